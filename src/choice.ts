/** One of the values that a field takes. */
export interface Choice {
  value: string;
  label: string;
  description?: string;
}

export function has(choices: Choice[], value: string): boolean {
  return choices.some((choice) => choice.value === value);
}

/** A saved value stays selectable, even if only another version knows it. */
export function withSaved(choices: Choice[], saved: string | undefined): Choice[] {
  return !saved || has(choices, saved) ? choices : [...choices, { value: saved, label: saved }];
}
