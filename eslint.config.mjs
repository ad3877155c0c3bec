import { defineConfig, globalIgnores } from 'eslint/config';
import baseConfig from './.config/eslint.config.mjs';

export default defineConfig([
  globalIgnores(['dist/', 'coverage/', 'pkg/', '.config/', '.tools/', 'tests/dist/']),
  ...baseConfig,
]);
