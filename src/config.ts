import { type DataSourceJsonData, type DataSourceSettings } from '@grafana/data';

import { type Choice } from './choice';

/**
 * The settings of a data source, as jsonData holds them. The backend reads the same JSON (pkg/plugin); tests/fixtures
 * hold both sides to one reading. Choices are texts, not unions: what only another version knows is kept.
 */
export interface Settings extends DataSourceJsonData {
  httpMethod?: string;
  /** Scrape interval where the data doesn't tell it, such as "30s". */
  timeInterval?: string;
  queryTimeout?: string;

  sigV4Auth?: boolean;
  sigV4AuthType?: string;
  /** Absent: read from an AMP URL. */
  sigV4Region?: string;
  sigV4Profile?: string;
  sigV4AssumeRoleArn?: string;
  sigV4ExternalId?: string;
  sigv4Service?: string;

  clusterLabel?: string;
  limits?: {
    /** Samples processed; 0 means AMP's own limit. */
    samplesWarning?: number;
    samplesError?: number;
    responseMB?: number;
    series?: number;
    cacheMB?: number;
  };
  price?: {
    source?: string;
    /** USD per physical GPU and hour. */
    usdPerGpuHour?: number;
    split?: string;
    gpuRatio?: number;
    discountPercent?: number;
    metric?: { name?: string; per?: string; nodeLabel?: string };
    assumeRoleArn?: string;
    cur?: { database?: string; table?: string; workgroup?: string; outputLocation?: string; region?: string };
    rates?: Rate[];
  };
  shares?: { slicesPerGpu?: number; migWeight?: string };
  businessUnit?: { source?: string; label?: string; rules?: Rule[] };
  utilization?: { metric?: string; unit?: string; attribution?: string };
}

/** USD per node and hour of an instance type, from a time on. */
export interface Rate {
  instanceType: string;
  capacityType?: string;
  region?: string;
  usdPerHour: number;
  from?: string;
}

/** Gives the namespaces that the anchored regular expression matches to a business unit. */
export interface Rule {
  businessUnit: string;
  namespaces: string;
}

/** Write-only: Grafana never sends them back. */
export interface SecureSettings {
  sigV4AccessKey?: string;
  sigV4SecretKey?: string;
  sigV4SessionToken?: string;
}

export const authTypes: Choice[] = [
  {
    value: 'default',
    label: 'AWS SDK default',
    description: 'The first credentials that the AWS SDK finds: environment, web identity, container or instance role',
  },
  { value: 'keys', label: 'Access and secret key', description: 'Keys of an IAM user, or temporary ones' },
  { value: 'credentials', label: 'Credentials file', description: 'A profile in the credentials file of the server' },
  { value: 'ec2_iam_role', label: 'EC2 IAM role', description: 'The role of the instance that Grafana runs on' },
  {
    value: 'grafana_assume_role',
    label: 'Grafana assume role',
    description: "A role that Grafana Cloud's own may assume",
  },
];

export const priceSources: Choice[] = [{ value: 'flat', label: 'One price' }];

export const businessUnitSources: Choice[] = [
  { value: 'namespace', label: 'Each namespace' },
  { value: 'rules', label: 'Rules' },
];

export const utilizationUnits: Choice[] = [
  { value: 'auto', label: 'Auto' },
  { value: 'ratio', label: 'Ratio (0-1)' },
  { value: 'percent', label: 'Percent (0-100)' },
];

export const attributions: Choice[] = [
  { value: 'auto', label: 'Auto' },
  { value: 'pod', label: 'Pod' },
  { value: 'cluster', label: 'Cluster' },
];

/** What is used where nothing is set. */
export const defaults = {
  timeInterval: '30s',
  sigV4AuthType: 'default',
  priceSource: 'flat',
  slicesPerGpu: 1,
  businessUnitSource: 'namespace',
  utilizationMetric: 'auto',
  utilizationUnit: 'auto',
  attribution: 'auto',
};

/** What is missing or wrong in the settings; the field is its path in jsonData, "url" or "secureJsonData.<key>". */
export interface SettingsProblem {
  field: string;
  sentence: string;
  /** Nothing has been entered: no news to somebody who is only about to. */
  isMissing?: boolean;
}

type Options = Pick<
  DataSourceSettings<Settings, SecureSettings>,
  'url' | 'jsonData' | 'secureJsonFields' | 'secureJsonData'
>;

/**
 * Everything in the editor's fields that the backend would refuse. The fields that the editor doesn't show are left to
 * the backend, which checks all of them on "Save & test".
 */
export function settingsProblems(options: Options): SettingsProblem[] {
  const { jsonData } = options;
  const price = jsonData.price ?? {};
  const businessUnit = jsonData.businessUnit ?? {};
  const utilization = jsonData.utilization ?? {};
  return [
    ...checkURL(options.url, jsonData),
    ...check('timeInterval', jsonData.timeInterval, isDuration, 'a duration above zero, such as 30s or 1m'),
    ...checkChoice('sigV4AuthType', jsonData.sigV4AuthType, authTypes),
    ...checkSigV4(options),
    ...checkChoice('price.source', price.source, priceSources, ['instanceType', 'priceList', 'metric', 'cur']),
    ...check('price.usdPerGpuHour', price.usdPerGpuHour, isPositive, 'a number of US dollars above 0'),
    ...check('shares.slicesPerGpu', jsonData.shares?.slicesPerGpu, isCount, 'a whole number of at least 1'),
    ...checkChoice('businessUnit.source', businessUnit.source, businessUnitSources, ['namespaceLabel', 'podLabel']),
    ...checkRules(businessUnit),
    ...check('utilization.metric', utilization.metric, isMetricName, 'auto or the name of a metric'),
    ...checkChoice('utilization.unit', utilization.unit, utilizationUnits),
    ...checkChoice('utilization.attribution', utilization.attribution, attributions),
    ...checkUnitIsKnown(utilization),
  ];
}

/** Region of an AMP workspace's URL; undefined for any other URL. */
export function regionOf(url: string): string | undefined {
  return ampHost.exec(parseURL(url)?.hostname ?? '')?.[1];
}

// Public, FIPS, dual-stack and VPC endpoints, in all partitions.
const ampHost =
  /^(?:[a-z0-9-]+\.)?aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws)$/;

function checkURL(typed: string, { sigV4Auth }: Settings): SettingsProblem[] {
  const refuse = (sentence: string) => [{ field: 'url', sentence }];
  if (typed.trim() === '') {
    return [missing('url', "enter the URL of the AMP workspace, or of another Prometheus' API.")];
  }
  const url = parseURL(typed);
  if (!/^https?:\/\//i.test(typed.trim())) {
    return refuse('Must begin with https:// or http://.');
  }
  if (!url) {
    return refuse('Is not a valid URL.');
  }
  if (url.username || url.password) {
    return refuse('Must not contain a user or password.');
  }
  if (/[?#]/.test(typed)) {
    return refuse('Must not contain ? or #.');
  }
  if (sigV4Auth === true && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return refuse('Must begin with https:// when requests are signed, as nobody else may read them.');
  }
  return [];
}

function parseURL(typed: string): URL | undefined {
  try {
    return new URL(typed.trim());
  } catch {
    return undefined;
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);
}

function checkSigV4({ url, jsonData, secureJsonFields, secureJsonData }: Options): SettingsProblem[] {
  if (jsonData.sigV4Auth !== true) {
    return [];
  }
  const problems: SettingsProblem[] = [];
  if (!jsonData.sigV4Region?.trim() && regionOf(url) === undefined) {
    problems.push(missing('sigV4Region', 'only the URL of an AMP workspace tells it by itself.'));
  }
  for (const key of ['sigV4AccessKey', 'sigV4SecretKey'] as const) {
    const isThere = secureJsonFields?.[key] || secureJsonData?.[key]?.trim();
    if (jsonData.sigV4AuthType === 'keys' && !isThere) {
      problems.push(missing(`secureJsonData.${key}`, 'enter the key.'));
    }
  }
  return problems;
}

function checkRules({ source, rules }: NonNullable<Settings['businessUnit']>): SettingsProblem[] {
  if (source === 'rules' && !rules?.length) {
    return [{ field: 'businessUnit.rules', sentence: 'There is no rule; add at least one.' }];
  }
  return (rules ?? []).flatMap((rule, i) => checkRule(`businessUnit.rules[${i}]`, rule));
}

/** The regular expression is left to the backend: Go's differ from the browser's. */
function checkRule(path: string, rule: Rule): SettingsProblem[] {
  const problems = checkRuleName(`${path}.businessUnit`, rule.businessUnit);
  if (!rule.namespaces?.trim()) {
    problems.push(missing(`${path}.namespaces`, 'enter a regular expression, such as research-.*'));
  }
  return problems;
}

/** Names that stand for something else in the answers. */
const specialRows = ['__unallocated__', '__shared_reservation__', '__other__', '__idle__', '__unknown__'];

function checkRuleName(field: string, name: string | undefined): SettingsProblem[] {
  if (!name?.trim()) {
    return [missing(field, 'enter the name of a business unit.')];
  }
  return specialRows.includes(name.trim())
    ? [{ field, sentence: 'Is the name of a special row; choose another one.' }]
    : [];
}

function checkUnitIsKnown({ metric, unit }: NonNullable<Settings['utilization']>): SettingsProblem[] {
  const name = typeof metric === 'string' ? metric.trim() : '';
  const isAuto = !unit || unit === 'auto';
  const tellsUnit = /^DCGM_FI_PROF_|_RATIO$|^DCGM_FI_DEV_.*_UTIL$/i.test(name);
  if (!isAuto || name === '' || name === 'auto' || !isMetricName(name) || tellsUnit) {
    return [];
  }
  return [
    { field: 'utilization.unit', sentence: `The name of ${name} doesn't tell its unit; choose ratio or percent.` },
  ];
}

function missing(field: string, advice: string): SettingsProblem {
  return { field, sentence: `Is empty; ${advice}`, isMissing: true };
}

/** A valid value; absent, null and empty text are valid, as they leave the default. */
function check(field: string, value: unknown, isValid: (value: unknown) => boolean, want: string): SettingsProblem[] {
  const isAbsent = value === undefined || value === null || (typeof value === 'string' && value.trim() === '');
  return isAbsent || isValid(value) ? [] : [{ field, sentence: `${JSON.stringify(value)} won't do: want ${want}.` }];
}

function checkChoice(field: string, value: unknown, choices: Choice[], later: string[] = []): SettingsProblem[] {
  const allowed = choices.map((choice) => choice.value);
  if (typeof value === 'string' && later.includes(value)) {
    return [{ field, sentence: `"${value}" is not available in this version; choose from the list.` }];
  }
  return check(field, value, (text) => typeof text === 'string' && allowed.includes(text), allowed.join(' or '));
}

function isPositive(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function isDuration(value: unknown): boolean {
  return (
    typeof value === 'string' && /^(?:(?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+[dwMy])$/.test(value) && /[1-9]/.test(value)
  );
}

function isMetricName(value: unknown): boolean {
  return typeof value === 'string' && /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(value.trim());
}
