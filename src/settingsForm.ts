import { useState } from 'react';
import { type DataSourceSettings } from '@grafana/data';

import { type SecureSettings, type Settings, settingsProblems } from './config';

type Options = DataSourceSettings<Settings, SecureSettings>;

/** What the sections of the editor share: the settings, how to change them, and what each field has to say. */
export interface Form {
  options: Options;
  settings: Settings;
  setOptions: (part: Partial<Options>) => void;
  set: (part: Partial<Settings>) => void;
  field: DescribeField;
}

/** Gives the properties of the Field that edits the setting at a path. */
export type DescribeField = (path: string) => {
  invalid: boolean;
  error?: string;
  disabled: boolean;
  onBlur: () => void;
};

/** What is merely missing is told once the user has been at its field and left it. */
export function useForm(options: Options, onOptionsChange: (options: Options) => void): Form {
  const [visited, setVisited] = useState<string[]>([]);
  const problems = settingsProblems(options);
  const setOptions: Form['setOptions'] = (part) => onOptionsChange({ ...options, ...part });
  return {
    options,
    settings: options.jsonData,
    setOptions,
    set: (part) => setOptions({ jsonData: { ...options.jsonData, ...part } }),
    field: (path) => {
      const problem = problems.find(({ field, isMissing }) => field === path && (!isMissing || visited.includes(path)));
      return {
        invalid: problem !== undefined,
        error: problem?.sentence,
        disabled: options.readOnly ?? false,
        onBlur: () => setVisited([...visited, path]),
      };
    },
  };
}
