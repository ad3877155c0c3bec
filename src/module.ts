import { DataSourcePlugin } from '@grafana/data';

import { type SecureSettings, type Settings } from './config';
import { ConfigEditor } from './ConfigEditor';
import { GPUCostDataSource } from './datasource';
import { type GPUCostQuery } from './query';
import { QueryEditor } from './QueryEditor';

export const plugin = new DataSourcePlugin<GPUCostDataSource, GPUCostQuery, Settings, SecureSettings>(GPUCostDataSource)
  .setConfigEditor(ConfigEditor)
  .setQueryEditor(QueryEditor);
