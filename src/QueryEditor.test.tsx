import React, { useState } from 'react';
import { dateTime, type TimeRange } from '@grafana/data';
import { render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { defaultQuery, type GPUCostQuery } from './query';
import { QueryEditor } from './QueryEditor';
import { dataSource, serve } from './testing/datasource';
import { type Variable } from './testing/templates';

const from = dateTime('2026-01-01T00:00:00Z');
const to = dateTime('2026-01-01T06:00:00Z');
const range: TimeRange = { from, to, raw: { from, to } };

/** Shows the editor as a panel does, which stores what it is given. */
function edit(saved: Partial<GPUCostQuery> = defaultQuery, variables: Record<string, Variable> = {}) {
  const onChange = jest.fn<void, [GPUCostQuery]>();
  const onRunQuery = jest.fn();
  const source = dataSource(variables);

  function Panel() {
    const [query, setQuery] = useState<GPUCostQuery>({ refId: 'A', ...saved });
    const store = (changed: GPUCostQuery) => {
      onChange(changed);
      setQuery(changed);
    };
    return <QueryEditor datasource={source} query={query} range={range} onChange={store} onRunQuery={onRunQuery} />;
  }

  render(<Panel />);
  return {
    onChange,
    onRunQuery,
    stored: () => onChange.mock.lastCall?.[0],
    user: userEvent.setup({ pointerEventsCheck: 0 }),
  };
}

const names = (...values: string[]) => ({ items: values.map((value) => ({ value, label: value })), more: false });
const option = (name: string | RegExp) => screen.findByRole('option', { name });

test('a business unit and a metric are two choices away, and each choice runs the query', async () => {
  const asked = serve(async () => names('research', 'vision'));
  const { user, stored, onRunQuery } = edit();

  await user.click(screen.getByLabelText('Business unit'));
  await user.click(await option('vision'));
  expect(stored()).toMatchObject({ businessUnits: ['vision'] });
  expect(onRunQuery).toHaveBeenCalledTimes(1);

  await user.click(screen.getByLabelText('Metric'));
  await user.click(await option(/^Idle/));
  expect(stored()).toMatchObject({ metrics: ['allocated', 'effective', 'waste', 'idle'] });
  expect(onRunQuery).toHaveBeenCalledTimes(2);

  expect(asked).toHaveLength(1);
  expect(asked[0].url).toContain('/resources/business-units');
});

test('nothing is stored, asked or run before the user does something', async () => {
  const asked = serve(async () => names());
  const { onChange, onRunQuery } = edit({});
  await waitFor(() => expect(screen.getByText('Allocated')).toBeInTheDocument());
  expect(onChange).not.toHaveBeenCalled();
  expect(onRunQuery).not.toHaveBeenCalled();
  expect(asked).toHaveLength(0);
});

test('fields that a query leaves out show their defaults', () => {
  serve(async () => names());
  edit({});
  for (const shown of ['All business units', 'Allocated', 'Effective', 'Waste']) {
    expect(screen.getByText(shown)).toBeVisible();
  }
  expect(screen.getByRole('radio', { name: 'Time series' })).toBeChecked();
  expect(screen.getByRole('radio', { name: 'Per hour' })).toBeChecked();
});

describe('the list of business units', () => {
  test('says that it is loading', async () => {
    serve(() => new Promise(() => {}));
    const { user } = edit();
    await user.click(screen.getByLabelText('Business unit'));
    expect(await screen.findByText('Loading business units...')).toBeVisible();
  });

  test('says that there are none in the range', async () => {
    serve(async () => names());
    const { user } = edit();
    await user.click(screen.getByLabelText('Business unit'));
    expect(await screen.findByText('No business units in this range')).toBeVisible();
    expect(screen.getByText(/Choose a longer one, or type a name/)).toBeVisible();
  });

  test('says why it could not be had, and is asked for again by a button', async () => {
    let works = false;
    const refusal = { status: 502, statusText: 'Bad Gateway', data: { message: 'AMP refused the signature.' } };
    serve(async () => (works ? names('research') : Promise.reject(refusal)));
    const { user } = edit();
    await user.click(screen.getByLabelText('Business unit'));
    expect(await screen.findByText('AMP refused the signature.')).toBeVisible();

    works = true;
    await user.click(screen.getByRole('button', { name: 'Retry' }));
    await waitFor(() => expect(screen.queryByText('AMP refused the signature.')).not.toBeInTheDocument());
    await user.click(screen.getByLabelText('Business unit'));
    expect(await option('research')).toBeVisible();
  });

  test('is searched by the backend when it is too long to be shown', async () => {
    const all = ['research', 'vision'];
    const asked = serve(async ({ params }) =>
      params?.q ? names(...all.filter((name) => name.includes(params.q))) : { ...names('research'), more: true }
    );
    const { user, stored } = edit();
    await user.click(screen.getByLabelText('Business unit'));
    await option('research');
    await user.keyboard('visio');
    await user.click(await option('vision'));
    expect(stored()).toMatchObject({ businessUnits: ['vision'] });
    expect(asked.map(({ params }) => params?.q)).toEqual([undefined, 'v', 'vi', 'vis', 'visi', 'visio']);
  });

  test('an answer that comes late does not replace a newer one', async () => {
    const answers: Array<(answer: unknown) => void> = [];
    serve(() => new Promise((resolve) => answers.push(resolve)));
    const { user } = edit();
    await user.click(screen.getByLabelText('Business unit'));
    await user.keyboard('{Escape}');
    await user.keyboard('{ArrowDown}');
    await waitFor(() => expect(answers).toHaveLength(2));
    answers[1](names('new'));
    expect(await option('new')).toBeVisible();
    answers[0](names('old'));
    await expect(option('old')).rejects.toThrow();
  });

  test('fits the range and the other filters of the query', async () => {
    const asked = serve(async () => names('research'));
    const { user } = edit({ ...defaultQuery, clusters: ['prod'], namespaces: ['$ns'] }, { ns: { value: ['a', 'b'] } });
    await user.click(screen.getByLabelText('Business unit'));
    await option('research');
    expect(asked[0].params).toMatchObject({
      from: from.valueOf(),
      to: to.valueOf(),
      clusters: ['prod'],
      namespaces: ['a', 'b'],
    });
  });

  test('offers template variables first', async () => {
    serve(async () => names('research'));
    const { user, stored } = edit(defaultQuery, { bu: { value: 'vision' } });
    await user.click(screen.getByLabelText('Business unit'));
    await option('research');
    expect(screen.getAllByRole('option')[0]).toHaveTextContent('$bu');
    await user.click(await option(/^\$bu/));
    expect(stored()).toMatchObject({ businessUnits: ['$bu'] });
  });

  test('takes names that it does not hold', async () => {
    serve(async () => names('research'));
    const { user, stored, onRunQuery } = edit();
    await user.type(screen.getByLabelText('Business unit'), 'gone last year{Enter}');
    expect(stored()).toMatchObject({ businessUnits: ['gone last year'] });
    expect(onRunQuery).toHaveBeenCalled();
  });

  test('keeps saved names that it does not hold', async () => {
    serve(async () => names('research'));
    const { user, stored } = edit({ ...defaultQuery, businessUnits: ['gone'] });
    expect(screen.getByText('gone')).toBeVisible();
    await user.click(screen.getByLabelText('Business unit'));
    await user.click(await option('research'));
    expect(stored()).toMatchObject({ businessUnits: ['gone', 'research'] });
  });

  test('is cleared to all of them', async () => {
    serve(async () => names());
    const { user, stored } = edit({ ...defaultQuery, businessUnits: ['research'] });
    await user.type(screen.getByLabelText('Business unit'), '{Backspace}');
    expect(stored()).toMatchObject({ businessUnits: [] });
    expect(screen.getByText('All business units')).toBeVisible();
  });

  test('works by keyboard alone', async () => {
    serve(async () => names('research', 'vision'));
    const { user, stored } = edit();
    await user.tab();
    expect(screen.getByLabelText('Business unit')).toHaveFocus();
    await user.keyboard('{ArrowDown}');
    await option('vision');
    await user.keyboard('{ArrowDown}{Enter}');
    expect(stored()).toMatchObject({ businessUnits: ['vision'] });
  });
});

describe('an incomplete query', () => {
  beforeEach(() => serve(async () => names()));

  test('is stored and not run, and says what is missing', async () => {
    const { user, stored, onRunQuery } = edit({ ...defaultQuery, metrics: ['waste'] });
    await user.type(screen.getByLabelText('Metric'), '{Backspace}');
    expect(stored()).toMatchObject({ metrics: [] });
    expect(onRunQuery).not.toHaveBeenCalled();
    expect(screen.getByRole('alert')).toHaveTextContent('No metric selected; choose at least one.');

    await user.click(screen.getByLabelText('Metric'));
    await user.click(await option(/^Waste/));
    expect(onRunQuery).toHaveBeenCalledTimes(1);
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  test('says that capacity belongs to nodes, until it is grouped by them', async () => {
    const { user, onRunQuery } = edit();
    await user.click(screen.getByLabelText('Metric'));
    await user.click(await option(/^Capacity/));
    expect(screen.getByRole('alert')).toHaveTextContent('The metric capacity can\'t be grouped by "bu"');
    expect(onRunQuery).not.toHaveBeenCalled();

    await user.type(screen.getByLabelText('Group by'), '{Backspace}');
    await user.click(await option('Node'));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(onRunQuery).toHaveBeenCalled();
  });

  test('shows values of another version, says that they are not known here, and keeps them', async () => {
    const saved = { metrics: ['co2'], groupBy: ['workload'], format: 'logs', period: 'year' };
    const { user, stored } = edit(saved);
    for (const problem of [
      '"co2" is not a metric',
      '"workload" is not available in this version',
      '"logs" is not a format',
      '"year" is not a period',
    ]) {
      expect(screen.getByText(new RegExp(problem))).toBeVisible();
    }
    expect(screen.getByRole('radio', { name: 'logs' })).toBeChecked();
    expect(screen.getByRole('radio', { name: 'year' })).toBeChecked();
    await user.type(screen.getByLabelText('Legend'), 'x{Enter}');
    expect(stored()).toMatchObject({ ...saved, legend: 'x' });
  });

  test('is shown even if a dashboard holds something else than lists', () => {
    edit({ metrics: 'waste', groupBy: 7, namespaces: {} } as unknown as GPUCostQuery);
    expect(screen.getAllByText('Must be a list of texts.')).toHaveLength(3);
  });
});

describe('the other fields', () => {
  beforeEach(() => serve(async () => names('a')));

  test('groups in the order of choice, by what this version knows', async () => {
    const { user, stored } = edit();
    await user.click(screen.getByLabelText('Group by'));
    await option('Pod');
    expect(screen.getAllByRole('option').map(({ textContent }) => textContent)).toEqual([
      'Namespace',
      'Cluster',
      'Node',
      'Pod',
    ]);
    await user.click(await option('Pod'));
    await user.click(screen.getByLabelText('Group by'));
    await user.click(await option('Cluster'));
    expect(stored()).toMatchObject({ groupBy: ['bu', 'pod', 'cluster'] });
  });

  test('format and cost are chosen by one click', async () => {
    const { user, stored, onRunQuery } = edit();
    await user.click(screen.getByRole('radio', { name: 'Table' }));
    await user.click(screen.getByRole('radio', { name: 'Per month' }));
    expect(stored()).toMatchObject({ format: 'table', period: 'month' });
    expect(onRunQuery).toHaveBeenCalledTimes(2);
  });

  test('a legend runs the query when it is done, not at every key', async () => {
    const { user, stored, onRunQuery } = edit();
    await user.click(screen.getByLabelText('Legend'));
    await user.paste('{{bu}}');
    expect(onRunQuery).not.toHaveBeenCalled();
    await user.tab();
    expect(stored()).toMatchObject({ legend: '{{bu}}' });
    expect(onRunQuery).toHaveBeenCalledTimes(1);
  });

  test('a legend that is left as it was runs nothing', async () => {
    const { user, onChange } = edit({ ...defaultQuery, legend: '{{bu}}' });
    await user.click(screen.getByLabelText('Legend'));
    await user.tab();
    expect(onChange).not.toHaveBeenCalled();
  });

  test.each([
    ['Namespace', 'namespaces', 'namespaces'],
    ['Cluster', 'clusters', 'clusters'],
    ['GPU model', 'gpuModels', 'gpu-models'],
  ])('the filter %s is one click away', async (label, field, list) => {
    const asked = serve(async () => names('a'));
    const { user, stored } = edit();
    expect(screen.queryByLabelText(label)).not.toBeInTheDocument();
    await user.click(screen.getByRole('button', { name: 'More filters', expanded: false }));
    await user.click(screen.getByLabelText(label));
    await user.click(await option('a'));
    expect(stored()).toMatchObject({ [field]: ['a'] });
    expect(asked[0].url).toContain(`/resources/${list}`);
  });

  test('filters that a query uses are shown at once', () => {
    edit({ ...defaultQuery, clusters: ['prod'] });
    expect(screen.getByRole('button', { name: 'More filters', expanded: true })).toBeVisible();
    expect(screen.getByText('prod')).toBeVisible();
  });

  test('the metric effective is explained as utilized cost', async () => {
    const { user } = edit({ ...defaultQuery, metrics: [] });
    await user.click(screen.getByLabelText('Metric'));
    expect(within(await option(/^Effective/)).getByText(/utilized cost/)).toBeVisible();
  });
});
