import { type ScopedVars } from '@grafana/data';
import { type TemplateSrv } from '@grafana/runtime';

/** How Grafana stores the choice of All, and how it shows it. */
const allValue = '$__all';
const allText = 'All';

/** A name that is one variable and nothing else, in each of Grafana's three spellings. */
const wholeVariable = /^(?:\$(\w+)|\$\{(\w+)(?::\w+)?\}|\[\[(\w+)(?::\w+)?\]\])$/;

/** Kinds of variables that can hold names. */
const kindsOfNames = ['query', 'custom', 'constant', 'textbox'];

/** References to the dashboard's variables that can hold names, such as "$team". */
export function variableReferences(templates: TemplateSrv): string[] {
  return templates
    .getVariables()
    .filter((variable) => kindsOfNames.includes(variable.type))
    .map((variable) => `$${variable.name}`);
}

/**
 * Replaces the template variables in a list of names. A variable of several values gives several names; All gives an
 * empty list, which stands for all. Where the variables hold nothing, the list becomes one empty name instead: it is
 * refused, for an empty list would ask for everything.
 */
export function expandNames(names: string[], scopedVars: ScopedVars, templates: TemplateSrv): string[] {
  if (names.some((name) => isAll(name.trim(), scopedVars, templates))) {
    return [];
  }
  const expanded = names
    .flatMap((name) => expandName(name, scopedVars, templates))
    .filter((name) => name.trim() !== '');
  return names.length > 0 && expanded.length === 0 ? [''] : [...new Set(expanded)];
}

/** In a panel repeated for each value, the variable is still at All for the dashboard, but not for the panel. */
function isAll(name: string, scopedVars: ScopedVars, templates: TemplateSrv): boolean {
  const variable = wholeVariable.exec(name)?.slice(1).find(Boolean);
  return (
    variable !== undefined &&
    holdsAll(variable, templates) &&
    templates.replace(`\${${variable}:text}`, scopedVars) === allText
  );
}

function holdsAll(name: string, templates: TemplateSrv): boolean {
  const variable = templates.getVariables().find((candidate) => candidate.name === name);
  if (!variable || !('current' in variable) || !variable.current || !('value' in variable.current)) {
    return false;
  }
  const { value } = variable.current;
  return Array.isArray(value) ? value.includes(allValue) : value === allValue;
}

/** "gpu-$team" with two teams is two names. */
function expandName(name: string, scopedVars: ScopedVars, templates: TemplateSrv): string[] {
  const mark = '\u001f';
  const parts = templates
    .replace(name, scopedVars, (value: string | string[]) => mark + JSON.stringify([value].flat()) + mark)
    .split(mark);
  return parts.reduce<string[]>(
    (heads, part, i) => {
      const isVariable = i % 2 === 1;
      const tails: string[] = isVariable ? JSON.parse(part) : [part];
      return heads.flatMap((head) => tails.map((tail) => head + tail));
    },
    ['']
  );
}
