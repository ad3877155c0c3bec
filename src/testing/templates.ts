import { type ScopedVars, type TypedVariableModel } from '@grafana/data';
import { type TemplateSrv } from '@grafana/runtime';

/** What a template variable of a dashboard holds. */
export interface Variable {
  /** As Grafana stores it: "$__all" is All. */
  value: string | string[];
  /** All the values, which All stands for. */
  options?: string[];
  /** What the dashboard's author lets All stand for instead. */
  allValue?: string;
  type?: string;
}

/** Replaces variables as a dashboard does. */
export function templatesOf(variables: Record<string, Variable>): TemplateSrv {
  const models = Object.entries(variables).map(([name, { value, type = 'query' }]) => ({
    name,
    type,
    current: { value },
  })) as unknown as TypedVariableModel[];

  const replaceOne = (variable: Variable, named: string | undefined, format: unknown) => {
    const values = [variable.value].flat();
    const isAll = values.includes('$__all');
    if (named === 'text') {
      return isAll ? 'All' : values.join(' + ');
    }
    if (isAll && variable.allValue !== undefined) {
      return variable.allValue;
    }
    const value = isAll ? (variable.options ?? []) : variable.value;
    return typeof format === 'function' ? format(value) : [value].flat().join(',');
  };

  return {
    getVariables: () => models,
    replace: (target = '', scopedVars: ScopedVars = {}, format) =>
      target.replace(/\$(\w+)|\[\[(\w+)\]\]|\$\{(\w+)(?::(\w+))?\}/g, (match, plain, square, curly, named) => {
        const name = plain ?? square ?? curly;
        const variable = scopedVars[name] ?? variables[name];
        return variable ? replaceOne(variable, named, format) : match;
      }),
    containsTemplate: () => false,
    updateTimeRange: () => {},
  };
}
