import { type DataQuery } from '@grafana/schema';

import { type Choice, has } from './choice';

/**
 * What a panel asks, as its dashboard stores it. The backend reads the same JSON (pkg/query); tests/fixtures hold both
 * sides to one reading. Values are texts, not unions: a dashboard may hold what only another version knows.
 */
export interface GPUCostQuery extends DataQuery {
  /** At least one; absent means `defaultQuery.metrics`. */
  metrics?: string[];
  /** Exact names or template variables. Absent and empty mean all, as in the three filters below. */
  businessUnits?: string[];
  namespaces?: string[];
  clusters?: string[];
  gpuModels?: string[];
  /** In this order; empty means one total. */
  groupBy?: string[];
  format?: string;
  period?: string;
  /** Template of a series' name, such as "{{bu}} {{metric}}"; empty means a readable default. */
  legend?: string;
}

export const metrics: Choice[] = [
  { value: 'allocated', label: 'Allocated', description: 'USD: cost of the GPUs held' },
  { value: 'effective', label: 'Effective', description: 'USD: utilized cost, the part of allocated that did work' },
  { value: 'waste', label: 'Waste', description: 'USD: measured part of allocated that did no work' },
  { value: 'unmeasured', label: 'Unmeasured', description: 'USD: part of allocated whose utilization is unknown' },
  { value: 'estimated', label: 'Estimated', description: 'USD: part of effective that rests on averages' },
  { value: 'idle', label: 'Idle', description: 'USD: cost of GPUs that nobody holds' },
  { value: 'efficiency', label: 'Efficiency', description: 'Ratio: effective to measured allocated cost' },
  { value: 'utilization', label: 'Utilization', description: 'Ratio: used part of the GPUs held' },
  { value: 'requested', label: 'Requested', description: 'GPUs: held by running pods, a slice as a fraction' },
  { value: 'units', label: 'Units', description: 'Devices or slices held, as Kubernetes counts them' },
  { value: 'capacity', label: 'Capacity', description: 'GPUs: what the nodes have' },
  { value: 'coverage', label: 'Coverage', description: 'Ratio: samples found to samples expected' },
];

export const dimensions: Choice[] = [
  { value: 'bu', label: 'Business unit' },
  { value: 'namespace', label: 'Namespace' },
  { value: 'cluster', label: 'Cluster' },
  { value: 'node', label: 'Node' },
  { value: 'pod', label: 'Pod' },
];

/** Dimensions that the query knows, but the backend can't answer yet. */
const laterDimensions = ['workload', 'instance_type', 'gpu_model'];

/** Dimensions that belong to whoever holds a GPU, not to the GPU. */
const dimensionsOfHolders = ['bu', 'namespace', 'pod', 'workload'];

export const formats: Choice[] = [
  { value: 'timeseries', label: 'Time series' },
  { value: 'table', label: 'Table' },
];

export const periods: Choice[] = [
  { value: 'hour', label: 'Per hour', description: 'USD per hour' },
  { value: 'range', label: 'Over the range', description: 'USD over the time range of the panel' },
  { value: 'month', label: 'Per month', description: 'USD per hour x 730' },
];

export const defaultQuery = {
  metrics: ['allocated', 'effective', 'waste'],
  businessUnits: [],
  groupBy: ['bu'],
  format: 'timeseries',
  period: 'hour',
} satisfies Partial<GPUCostQuery>;

export type Filter = 'businessUnits' | 'namespaces' | 'clusters' | 'gpuModels';

/** The filters, and how one name of each is called. */
export const filters: Record<Filter, string> = {
  businessUnits: 'business unit',
  namespaces: 'namespace',
  clusters: 'cluster',
  gpuModels: 'GPU model',
};

/** What is missing or wrong in a query, and in which field. */
export interface QueryProblem {
  field: Filter | 'metrics' | 'groupBy' | 'format' | 'period' | 'legend';
  sentence: string;
}

/** Everything that keeps the backend from answering, in the order in which it looks. Empty for a complete query. */
export function queryProblems(query: GPUCostQuery): QueryProblem[] {
  return [
    ...checkMetrics(query),
    ...checkGroupBy(query),
    ...checkFilters(query),
    ...checkChoice('format', 'a format', query.format, formats),
    ...checkChoice('period', 'a period', query.period, periods),
    ...checkText('legend', query.legend),
    ...checkCapacity(query),
  ];
}

export function isComplete(query: GPUCostQuery): boolean {
  return queryProblems(query).length === 0;
}

function checkMetrics(query: GPUCostQuery): QueryProblem[] {
  const asked: unknown = query.metrics ?? defaultQuery.metrics;
  if (!isTexts(asked)) {
    return [notTexts('metrics')];
  }
  if (asked.length === 0) {
    return [{ field: 'metrics', sentence: 'No metric selected; choose at least one.' }];
  }
  return asked
    .filter((metric) => !has(metrics, metric))
    .map((metric) => ({ field: 'metrics', sentence: `"${metric}" is not a metric; choose from the list.` }));
}

function checkGroupBy(query: GPUCostQuery): QueryProblem[] {
  const keys: unknown = query.groupBy ?? defaultQuery.groupBy;
  if (!isTexts(keys)) {
    return [notTexts('groupBy')];
  }
  return keys
    .filter((key) => !has(dimensions, key))
    .map((key) => {
      const problem = laterDimensions.includes(key) ? 'not available in this version' : 'not something to group by';
      return { field: 'groupBy', sentence: `"${key}" is ${problem}; choose from the list.` };
    });
}

function checkFilters(query: GPUCostQuery): QueryProblem[] {
  const fields: Filter[] = ['businessUnits', 'namespaces', 'clusters', 'gpuModels'];
  return fields.flatMap((field) => checkNames(field, query[field]));
}

/** A list that a template variable emptied arrives as one empty text: it must not be read as all. */
function checkNames(field: Filter, names: unknown): QueryProblem[] {
  if (names === undefined || names === null) {
    return [];
  }
  if (!isTexts(names)) {
    return [notTexts(field)];
  }
  if (names.length > 0 && names.every((name) => name.trim() === '')) {
    return [{ field, sentence: `No ${filters[field]} selected; choose at least one, or none at all for all.` }];
  }
  return [];
}

function checkChoice(field: 'format' | 'period', what: string, value: unknown, choices: Choice[]): QueryProblem[] {
  if (typeof value !== 'string') {
    return checkText(field, value);
  }
  return value === '' || has(choices, value)
    ? []
    : [{ field, sentence: `"${value}" is not ${what}; choose from the list.` }];
}

function checkText(field: 'format' | 'period' | 'legend', value: unknown): QueryProblem[] {
  const absent = value === undefined || value === null;
  return absent || typeof value === 'string' ? [] : [{ field, sentence: 'Must be text.' }];
}

/** GPUs belong to nodes: capacity can't be shared out among those who hold them. */
function checkCapacity(query: GPUCostQuery): QueryProblem[] {
  const keys: unknown = query.groupBy ?? defaultQuery.groupBy;
  if (!isTexts(query.metrics) || !query.metrics.includes('capacity') || !isTexts(keys)) {
    return [];
  }
  return keys
    .filter((key) => dimensionsOfHolders.includes(key))
    .map((key) => ({
      field: 'groupBy',
      sentence: `The metric capacity can't be grouped by "${key}": GPUs belong to nodes, not to their holders. Group it by cluster or node, or by nothing.`,
    }));
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function notTexts(field: QueryProblem['field']): QueryProblem {
  return { field, sentence: 'Must be a list of texts.' };
}
