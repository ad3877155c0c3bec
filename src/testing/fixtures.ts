import { readdirSync, readFileSync } from 'fs';
import { join } from 'path';

/** The cases that the backend is tested against as well, by name; tests/fixtures/README.md tells what they hold. */
export function fixtures<T>(kind: 'queries' | 'settings'): Array<[name: string, fixture: T]> {
  const folder = join(process.cwd(), 'tests', 'fixtures', kind);
  return readdirSync(folder).map((file) => [
    file.replace('.json', ''),
    JSON.parse(readFileSync(join(folder, file), 'utf8')),
  ]);
}
