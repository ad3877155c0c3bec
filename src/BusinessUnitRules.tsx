import React from 'react';
import { Box, Button, Field, IconButton, Input, Stack, Text } from '@grafana/ui';

import { type Rule } from './config';
import { type DescribeField } from './settingsForm';

interface Props {
  rules: Rule[];
  field: DescribeField;
  onChange: (rules: Rule[]) => void;
}

/** The rules that give namespaces to business units, in the order in which they are tried. */
export function BusinessUnitRules({ rules, field, onChange }: Props) {
  const { disabled, error } = field('businessUnit.rules');
  const change = (at: number, part: Partial<Rule>) =>
    onChange(rules.map((rule, i) => (i === at ? { ...rule, ...part } : rule)));
  return (
    <Stack direction="column" gap={1} alignItems="flex-start">
      {rules.map((rule, i) => (
        <Stack key={i} direction="row" gap={1} alignItems="flex-start">
          <Field label="Business unit" {...field(`businessUnit.rules[${i}].businessUnit`)}>
            <Input
              width={30}
              id={`businessUnit.rules.${i}.businessUnit`}
              value={rule.businessUnit}
              placeholder="Research"
              onChange={({ currentTarget }) => change(i, { businessUnit: currentTarget.value })}
            />
          </Field>
          <Field label="Namespaces (regular expression)" {...field(`businessUnit.rules[${i}].namespaces`)}>
            <Input
              width={30}
              id={`businessUnit.rules.${i}.namespaces`}
              value={rule.namespaces}
              placeholder="research-.*"
              onChange={({ currentTarget }) => change(i, { namespaces: currentTarget.value })}
            />
          </Field>
          <Box paddingTop={3}>
            <IconButton
              name="trash-alt"
              aria-label={`Remove rule ${i + 1}`}
              disabled={disabled}
              onClick={() => onChange(rules.filter((_, at) => at !== i))}
            />
          </Box>
        </Stack>
      ))}
      {error && <Text color="error">{error}</Text>}
      <Button
        icon="plus"
        variant="secondary"
        size="sm"
        disabled={disabled}
        onClick={() => onChange([...rules, { businessUnit: '', namespaces: '' }])}
      >
        Add rule
      </Button>
    </Stack>
  );
}
