import { type DataSourceInstanceSettings, type ScopedVars, type TimeRange } from '@grafana/data';
import { DataSourceWithBackend, getTemplateSrv } from '@grafana/runtime';

import { type Settings } from './config';
import { defaultQuery, type GPUCostQuery, isComplete, isTexts } from './query';
import { expandNames, variableReferences } from './variables';

/** Lists of names that the backend can give. */
export type NameList = 'business-units' | 'namespaces' | 'clusters' | 'gpu-models';

export interface Names {
  items: Array<{ value: string; label: string }>;
  /** More names match than were asked for. */
  more: boolean;
}

/** Which names to list: those seen in the range, that contain the text, in the clusters and namespaces named. */
export interface NameSearch {
  range: TimeRange;
  text?: string;
  clusters?: string[];
  namespaces?: string[];
}

const maxNames = 1000;

export class GPUCostDataSource extends DataSourceWithBackend<GPUCostQuery, Settings> {
  constructor(
    settings: DataSourceInstanceSettings<Settings>,
    private readonly templates = getTemplateSrv()
  ) {
    super(settings);
  }

  getDefaultQuery(): Partial<GPUCostQuery> {
    return defaultQuery;
  }

  filterQuery(query: GPUCostQuery): boolean {
    return isComplete(query);
  }

  applyTemplateVariables(query: GPUCostQuery, scopedVars: ScopedVars): GPUCostQuery {
    const expand = (names?: string[]) => (isTexts(names) ? expandNames(names, scopedVars, this.templates) : names);
    return {
      ...query,
      businessUnits: expand(query.businessUnits),
      namespaces: expand(query.namespaces),
      clusters: expand(query.clusters),
      gpuModels: expand(query.gpuModels),
      legend: query.legend && this.templates.replace(query.legend, scopedVars),
    };
  }

  /** Explore knows no dashboard variables: queries arrive there with their values. */
  interpolateVariablesInQueries(queries: GPUCostQuery[], scopedVars: ScopedVars): GPUCostQuery[] {
    return queries.map((query) => ({ ...this.applyTemplateVariables(query, scopedVars), datasource: this.getRef() }));
  }

  /** Names seen in the range of time. Rejects with what the backend says. */
  names(list: NameList, { range, text, clusters = [], namespaces = [] }: NameSearch): Promise<Names> {
    return this.getResource(list, {
      from: range.from.valueOf(),
      to: range.to.valueOf(),
      limit: maxNames,
      q: text || undefined,
      clusters: expandNames(clusters, {}, this.templates),
      namespaces: expandNames(namespaces, {}, this.templates),
    });
  }

  /** The dashboard's variables, as a query refers to them. */
  variableReferences(): string[] {
    return variableReferences(this.templates);
  }
}
