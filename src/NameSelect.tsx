import React, { useRef, useState } from 'react';
import { toDataQueryError } from '@grafana/runtime';
import { Alert, Button, Field, MultiSelect, Stack } from '@grafana/ui';

import { type Names } from './datasource';

interface Props {
  id: string;
  label: string;
  /** Plural of what is named, such as "business units". */
  what: string;
  names: string[];
  /** References to template variables, offered before the names. */
  variables: string[];
  problem?: string;
  /** Gives the names that contain the text. */
  load: (text: string) => Promise<Names>;
  onChange: (names: string[]) => void;
}

interface Found extends Names {
  /** There are more names than could be listed at once: what is typed has to be asked for. */
  partial: boolean;
}

/**
 * A filter on names. They are listed each time the menu opens, so that the list always fits the range and the other
 * filters; names outside of it can be typed.
 */
export function NameSelect({ id, label, what, names, variables, problem, load, onChange }: Props) {
  const [found, setFound] = useState<Found>();
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState<string>();
  const latest = useRef(0);

  const list = async (text: string) => {
    const asked = ++latest.current;
    const isLatest = () => asked === latest.current;
    setLoading(true);
    setError(undefined);
    try {
      const names = await load(text);
      if (isLatest()) {
        setFound({ ...names, partial: names.more || text !== '' });
      }
    } catch (err) {
      if (isLatest()) {
        setFound(undefined);
        setError(toDataQueryError(err).message);
      }
    }
    if (isLatest()) {
      setLoading(false);
    }
  };

  const isEmpty = found !== undefined && !found.partial && found.items.length === 0;
  const options = [
    ...variables.map((variable) => ({ value: variable, label: variable, description: 'Template variable' })),
    ...(found?.items ?? []),
  ];
  return (
    <Stack direction="column" gap={0}>
      <Field
        label={label}
        description={isEmpty && `No ${what} in this range. Choose a longer one, or type a name.`}
        htmlFor={id}
        invalid={problem !== undefined}
        error={problem}
      >
        <MultiSelect
          inputId={id}
          value={names}
          options={options}
          isLoading={loading}
          loadingMessage={`Loading ${what}...`}
          noOptionsMessage={isEmpty ? `No ${what} in this range` : `No ${what} found`}
          placeholder={`All ${what}`}
          isClearable
          closeMenuOnSelect={false}
          allowCustomValue
          onOpenMenu={() => list('')}
          onInputChange={(text, { action }) => {
            if (action === 'input-change' && found?.partial) {
              list(text);
            }
          }}
          onChange={(chosen) => onChange(chosen.flatMap(({ value }) => value ?? []))}
        />
      </Field>
      {error && (
        <Alert severity="error" title={`Could not list the ${what}`}>
          <Stack direction="column" gap={1} alignItems="flex-start">
            {error}
            <Button size="sm" variant="secondary" onClick={() => list('')}>
              Retry
            </Button>
          </Stack>
        </Alert>
      )}
    </Stack>
  );
}
