import { defineConfig, globalIgnores } from 'eslint/config';
import baseConfig from './.config/eslint.config.mjs';

export default defineConfig([
  globalIgnores(['dist/', 'coverage/', 'pkg/', '.config/', '.tools/', 'tests/dist/']),
  ...baseConfig,
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: {
      // In Grafana 12.0 its successor, MultiCombobox, can't be labeled: it takes no id.
      '@typescript-eslint/no-deprecated': [
        'warn',
        { allow: [{ from: 'package', package: '@grafana/ui', name: 'MultiSelect' }] },
      ],
    },
  },
]);
