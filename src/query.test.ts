import { defaultQuery, type GPUCostQuery, isComplete, queryProblems } from './query';
import { fixtures } from './testing/fixtures';

interface QueryFixture {
  query: GPUCostQuery;
  variables?: unknown;
  refused?: { field: string; problem: string };
}

describe('what the backend accepts or refuses, the editor does too', () => {
  const cases = fixtures<QueryFixture>('queries').filter(([, { variables }]) => !variables);

  test.each(cases)('%s', (_, { query, refused }) => {
    const [first] = queryProblems(query);
    expect(first?.field).toBe(refused?.field);
    expect(first?.sentence.toLowerCase() ?? '').toContain(refused?.problem.toLowerCase() ?? '');
    expect(isComplete(query)).toBe(!refused);
  });
});

describe('query', () => {
  test('variables leave a query complete, as what they hold is not yet known', () => {
    for (const [name, { query, variables }] of fixtures<QueryFixture>('queries')) {
      if (variables) {
        expect([name, queryProblems(query)]).toEqual([name, []]);
      }
    }
  });

  test('the query of a new panel is complete', () => {
    expect(queryProblems({ refId: 'A', ...defaultQuery })).toEqual([]);
  });

  test('all problems are told, each at its field', () => {
    const query = { refId: 'A', metrics: [], groupBy: ['team', 'workload'], clusters: [''], format: 'logs' };
    expect(queryProblems(query).map(({ field }) => field)).toEqual([
      'metrics',
      'groupBy',
      'groupBy',
      'clusters',
      'format',
    ]);
  });
});
