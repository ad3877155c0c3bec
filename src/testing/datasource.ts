import { type DataSourceInstanceSettings } from '@grafana/data';
import { type BackendSrv, type BackendSrvRequest, type FetchResponse, setBackendSrv } from '@grafana/runtime';
import { from, type Observable } from 'rxjs';

import { type Settings } from '../config';
import { GPUCostDataSource } from '../datasource';
import { templatesOf, type Variable } from './templates';

/** A data source in a dashboard with these variables. */
export function dataSource(variables: Record<string, Variable> = {}): GPUCostDataSource {
  const settings = {
    uid: 'gpucost',
    type: 'gpucost-amp-datasource',
    name: 'GPU Cost',
    jsonData: {},
  } as DataSourceInstanceSettings<Settings>;
  return new GPUCostDataSource(settings, templatesOf(variables));
}

/** Lets Grafana's server answer, and gives the list of what it is asked. */
export function serve(answer: (request: BackendSrvRequest) => Promise<unknown>): BackendSrvRequest[] {
  const asked: BackendSrvRequest[] = [];
  const fetch = (request: BackendSrvRequest): Observable<FetchResponse> => {
    asked.push(request);
    return from(answer(request).then((data) => ({ data }) as FetchResponse));
  };
  setBackendSrv({ fetch } as unknown as BackendSrv);
  return asked;
}
