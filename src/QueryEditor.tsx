import React, { useId, useState } from 'react';
import { getDefaultTimeRange, type QueryEditorProps, type SelectableValue } from '@grafana/data';
import { Box, Button, Field, Input, MultiSelect, RadioButtonGroup, Stack } from '@grafana/ui';

import { withSaved } from './choice';
import { type Settings } from './config';
import { type GPUCostDataSource, type NameList, type NameSearch } from './datasource';
import { NameSelect } from './NameSelect';
import {
  defaultQuery,
  dimensions,
  type Filter,
  formats,
  type GPUCostQuery,
  isComplete,
  isTexts,
  metrics,
  periods,
  type QueryProblem,
  queryProblems,
} from './query';

type Props = QueryEditorProps<GPUCostDataSource, GPUCostQuery, Settings>;

const nameLists: Record<Filter, NameList> = {
  businessUnits: 'business-units',
  namespaces: 'namespaces',
  clusters: 'clusters',
  gpuModels: 'gpu-models',
};

const moreFilters: Filter[] = ['namespaces', 'clusters', 'gpuModels'];

export function QueryEditor({ datasource, query, range, onChange, onRunQuery }: Props) {
  const id = useId();
  const problems = queryProblems(query);
  const problemOf = (field: QueryProblem['field']) => problems.find((problem) => problem.field === field)?.sentence;
  const explained = (field: QueryProblem['field']) => {
    const problem = problemOf(field);
    return { invalid: problem !== undefined, error: problem };
  };

  const change = (part: Partial<GPUCostQuery>) => {
    const changed = { ...query, ...part };
    onChange(changed);
    if (isComplete(changed)) {
      onRunQuery();
    }
  };

  const nameSelect = (
    field: Filter,
    label: string,
    what: string,
    scope: Pick<NameSearch, 'clusters' | 'namespaces'>
  ) => (
    <NameSelect
      id={`${id}-${field}`}
      label={label}
      what={what}
      names={texts(query[field])}
      variables={datasource.variableReferences()}
      problem={problemOf(field)}
      load={(text) => datasource.names(nameLists[field], { range: range ?? getDefaultTimeRange(), text, ...scope })}
      onChange={(names) => change({ [field]: names })}
    />
  );
  const clusters = texts(query.clusters);
  const namespaces = texts(query.namespaces);

  return (
    <Stack direction="column" gap={0}>
      <Stack direction="row" gap={2} wrap="wrap">
        <Box grow={1} basis="0%" minWidth={40}>
          {nameSelect('businessUnits', 'Business unit', 'business units', { clusters, namespaces })}
        </Box>
        <Box grow={1} basis="0%" minWidth={40}>
          <Field label="Metric" htmlFor={`${id}-metrics`} {...explained('metrics')}>
            <MultiSelect
              inputId={`${id}-metrics`}
              value={texts(query.metrics ?? defaultQuery.metrics)}
              options={metrics}
              placeholder="Choose a metric"
              closeMenuOnSelect={false}
              onChange={(chosen) => change({ metrics: values(chosen) })}
            />
          </Field>
        </Box>
      </Stack>
      <Stack direction="row" gap={2} wrap="wrap">
        <Box minWidth={30} maxWidth={50}>
          <Field label="Group by" htmlFor={`${id}-groupBy`} {...explained('groupBy')}>
            <MultiSelect
              inputId={`${id}-groupBy`}
              value={texts(query.groupBy ?? defaultQuery.groupBy)}
              options={dimensions}
              placeholder="One total"
              isClearable
              onChange={(chosen) => change({ groupBy: values(chosen) })}
            />
          </Field>
        </Box>
        <Field label="Format" {...explained('format')}>
          <RadioButtonGroup
            aria-label="Format"
            value={query.format || defaultQuery.format}
            options={withSaved(formats, query.format)}
            onChange={(format) => change({ format })}
          />
        </Field>
        <Field label="Cost" {...explained('period')}>
          <RadioButtonGroup
            aria-label="Cost"
            value={query.period || defaultQuery.period}
            options={withSaved(periods, query.period)}
            onChange={(period) => change({ period })}
          />
        </Field>
        <Box grow={1} minWidth={25}>
          <Field label="Legend" htmlFor={`${id}-legend`} {...explained('legend')}>
            <LegendInput id={`${id}-legend`} legend={query.legend ?? ''} onChange={(legend) => change({ legend })} />
          </Field>
        </Box>
      </Stack>
      <MoreFilters isUsed={moreFilters.some((field) => texts(query[field]).length > 0 || problemOf(field))}>
        {nameSelect('namespaces', 'Namespace', 'namespaces', { clusters })}
        {nameSelect('clusters', 'Cluster', 'clusters', {})}
        {nameSelect('gpuModels', 'GPU model', 'GPU models', { clusters, namespaces })}
      </MoreFilters>
    </Stack>
  );
}

interface LegendInputProps {
  id: string;
  legend: string;
  onChange: (legend: string) => void;
}

/** Takes effect when left or entered, not at every key: each change asks the backend. */
function LegendInput({ id, legend, onChange, ...field }: LegendInputProps) {
  const commit = (typed: string) => {
    if (typed !== legend) {
      onChange(typed);
    }
  };
  return (
    <Input
      {...field}
      id={id}
      key={legend}
      defaultValue={legend}
      placeholder="{{bu}} {{metric}}"
      onBlur={(event) => commit(event.currentTarget.value)}
      onKeyDown={(event) => event.key === 'Enter' && commit(event.currentTarget.value)}
    />
  );
}

/** Filters that few panels need. They start open where the query uses one. */
function MoreFilters({ isUsed, children }: React.PropsWithChildren<{ isUsed: boolean }>) {
  const [isOpen, setIsOpen] = useState(isUsed);
  return (
    <Stack direction="column" gap={1} alignItems="flex-start">
      <Button
        variant="secondary"
        fill="text"
        size="sm"
        icon={isOpen ? 'angle-down' : 'angle-right'}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        More filters
      </Button>
      {isOpen && (
        <Stack direction="row" gap={2} wrap="wrap">
          {React.Children.map(children, (filter) => (
            <Box minWidth={30}>{filter}</Box>
          ))}
        </Stack>
      )}
    </Stack>
  );
}

/** What a select can show of a saved list, whatever was saved. */
function texts(saved: unknown): string[] {
  return isTexts(saved) ? saved : [];
}

function values(chosen: Array<SelectableValue<string>>): string[] {
  return chosen.flatMap(({ value }) => value ?? []);
}
