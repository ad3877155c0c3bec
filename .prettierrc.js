module.exports = require('./.config/.prettierrc.js');
