import { type DataQueryRequest, dateTime, type TimeRange } from '@grafana/data';
import { lastValueFrom } from 'rxjs';

import { type GPUCostQuery } from './query';
import { dataSource, serve } from './testing/datasource';
import { fixtures } from './testing/fixtures';
import { type Variable } from './testing/templates';

interface VariablesFixture {
  query: GPUCostQuery;
  variables: Record<string, Variable>;
  sent: GPUCostQuery;
}

const from = dateTime('2026-01-01T00:00:00Z');
const to = dateTime('2026-01-01T06:00:00Z');
const range: TimeRange = { from, to, raw: { from, to } };

describe('template variables become what the backend is tested with', () => {
  const cases = fixtures<VariablesFixture>('queries').filter(([, { variables }]) => variables);

  test.each(cases)('%s', (_, { query, variables, sent }) => {
    expect(dataSource(variables).applyTemplateVariables(query, {})).toEqual(sent);
  });

  test('a panel repeated for each value of a variable at All asks for its own value', () => {
    const source = dataSource({ bu: { value: ['$__all'], options: ['research', 'vision'] } });
    const scopedVars = { bu: { text: 'vision', value: 'vision' } };
    expect(source.applyTemplateVariables({ refId: 'A', businessUnits: ['$bu'] }, scopedVars).businessUnits).toEqual([
      'vision',
    ]);
  });

  test('what is no list of names is left to the backend to refuse', () => {
    const query = { refId: 'A', clusters: 'prod' } as unknown as GPUCostQuery;
    expect(dataSource().applyTemplateVariables(query, {})).toEqual(query);
  });

  test('a query goes to Explore with the values of its variables', () => {
    const source = dataSource({ bu: { value: ['research', 'vision'] } });
    expect(source.interpolateVariablesInQueries([{ refId: 'A', businessUnits: ['$bu'] }], {})).toEqual([
      { refId: 'A', businessUnits: ['research', 'vision'], datasource: source.getRef() },
    ]);
  });
});

describe('data source', () => {
  test('the backend is asked with values, not variables', async () => {
    const asked = serve(async () => ({ results: {} }));
    const source = dataSource({ bu: { value: 'research' } });
    const request = { range, targets: [{ refId: 'A', businessUnits: ['$bu'] }], scopedVars: {} };
    await lastValueFrom(source.query(request as unknown as DataQueryRequest<GPUCostQuery>));
    expect(asked[0].data.queries[0]).toMatchObject({ refId: 'A', businessUnits: ['research'] });
  });

  test('a new panel shows what business units pay, use and waste, at once', () => {
    const query = { refId: 'A', ...dataSource().getDefaultQuery() };
    expect(query).toMatchObject({ metrics: ['allocated', 'effective', 'waste'], groupBy: ['bu'] });
    expect(dataSource().filterQuery(query)).toBe(true);
  });

  test('an incomplete query is not run', () => {
    expect(dataSource().filterQuery({ refId: 'A', metrics: [] })).toBe(false);
  });

  test('health is left to the backend', () => {
    expect(Object.getOwnPropertyNames(Object.getPrototypeOf(dataSource()))).not.toContain('testDatasource');
  });

  test('names are asked for in the range, and in the clusters and namespaces of the query', async () => {
    const asked = serve(async () => ({ items: [{ value: 'research', label: 'Research' }], more: true }));
    const source = dataSource({ cluster: { value: ['c1', 'c2'] }, namespace: { value: '$__all' } });
    const search = { range, text: 're', clusters: ['$cluster'], namespaces: ['$namespace'] };
    await expect(source.names('business-units', search)).resolves.toEqual({
      items: [{ value: 'research', label: 'Research' }],
      more: true,
    });
    expect(asked[0]).toMatchObject({
      method: 'GET',
      url: '/api/datasources/uid/gpucost/resources/business-units',
      params: { from: 1767225600000, to: 1767247200000, q: 're', limit: 1000, clusters: ['c1', 'c2'], namespaces: [] },
    });
  });

  test('variables that can hold names are offered, others are not', () => {
    const value = '';
    const source = dataSource({ bu: { value }, cluster: { value, type: 'custom' }, filters: { value, type: 'adhoc' } });
    expect(source.variableReferences()).toEqual(['$bu', '$cluster']);
  });
});
