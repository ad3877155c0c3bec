import { readdirSync, readFileSync } from 'fs';
import { join } from 'path';

import { ConfigEditor } from './ConfigEditor';
import { GPUCostDataSource } from './datasource';
import { plugin } from './module';
import { QueryEditor } from './QueryEditor';

/**
 * What Grafana 12.0 and 13 both have. Grafana gives its own version of these packages to the plugin: a name that it
 * doesn't have breaks the editors there, however well they build here. Look a name up in both before adding it.
 */
const inBothVersions: Record<string, string[]> = {
  '@grafana/data': ['DataSourcePlugin', 'getDefaultTimeRange'],
  '@grafana/runtime': ['DataSourceWithBackend', 'getTemplateSrv', 'toDataQueryError'],
  '@grafana/ui': [
    'Alert',
    'Box',
    'Button',
    'Combobox',
    'Field',
    'FieldSet',
    'IconButton',
    'Input',
    'MultiSelect',
    'RadioButtonGroup',
    'SecretInput',
    'Stack',
    'Switch',
    'Text',
  ],
};

function shippedSources(): string[] {
  return readdirSync(__dirname)
    .filter((file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file))
    .map((file) => readFileSync(join(__dirname, file), 'utf8'));
}

/** Names that the sources import from each package, types apart: those are gone when the plugin runs. */
function imports(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const source of shippedSources()) {
    for (const [, names, from] of source.matchAll(/import (?:\w+, )?\{([^}]*)\} from '(@grafana\/[^']+)'/g)) {
      const values = names.split(',').map((name) => name.trim());
      for (const name of values.filter((name) => name !== '' && !name.startsWith('type '))) {
        found.set(from, (found.get(from) ?? new Set()).add(name));
      }
    }
  }
  return found;
}

test('only what Grafana 12.0 and 13 both have is used of Grafana', () => {
  const used = Object.fromEntries([...imports()].map(([from, names]) => [from, [...names].sort()]));
  expect(used).toEqual(inBothVersions);
});

test('the module gives Grafana a data source and its two editors', () => {
  expect(plugin.DataSourceClass).toBe(GPUCostDataSource);
  expect(plugin.components).toMatchObject({ QueryEditor, ConfigEditor });
});
