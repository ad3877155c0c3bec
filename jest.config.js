// The answers of Date must not depend on where the tests run.
process.env.TZ = 'UTC';

const base = require('./.config/jest.config');
const { grafanaESModules, nodeModulesToTransform } = require('./.config/jest/utils');

const [swc] = Object.values(base.transform);

module.exports = {
  ...base,
  testTimeout: 15_000, // @grafana/ui is slow to load on a small machine
  transform: { '^.+\\.m?[tj]sx?$': swc }, // some of d3 ships as .mjs
  transformIgnorePatterns: [nodeModulesToTransform([...grafanaESModules, '@react-hookz/web', '@ver0/deep-equal'])],
};
