import React from 'react';
import { type DataSourcePluginOptionsEditorProps } from '@grafana/data';
import { Alert, Combobox, Field, FieldSet, Input, RadioButtonGroup, SecretInput, Switch } from '@grafana/ui';

import { BusinessUnitRules } from './BusinessUnitRules';
import { withSaved } from './choice';
import {
  attributions,
  authTypes,
  businessUnitSources,
  defaults,
  priceSources,
  regionOf,
  type SecureSettings,
  type Settings,
  utilizationUnits,
} from './config';
import { type Form, useForm } from './settingsForm';

type Props = DataSourcePluginOptionsEditorProps<Settings, SecureSettings>;

const inputWidth = 60;

export function ConfigEditor({ options, onOptionsChange }: Props) {
  const form = useForm(options, onOptionsChange);
  return (
    <>
      {options.readOnly && (
        <Alert severity="info" title="These settings are provisioned">
          They come from a file or an API that Grafana was set up with, and can only be changed there.
        </Alert>
      )}
      {/* The fields disable themselves, and look like it; what stands beside them, such as Reset, does not. */}
      <FieldSet disabled={options.readOnly}>
        <Connection {...form} />
        {form.settings.sigV4Auth && <Signing {...form} />}
        <Price {...form} />
        <BusinessUnits {...form} />
        <Sharing {...form} />
        <Utilization {...form} />
      </FieldSet>
    </>
  );
}

function Connection({ options, settings, setOptions, set, field }: Form) {
  return (
    <FieldSet label="Connection">
      <Field
        label="URL"
        required
        description="The query endpoint of the AMP workspace, as the AWS console shows it. Any other Prometheus-compatible API works without SigV4."
        {...field('url')}
      >
        <Input
          id="url"
          width={inputWidth}
          value={options.url}
          placeholder="https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-..."
          onChange={({ currentTarget }) => setOptions({ url: currentTarget.value })}
        />
      </Field>
      <Field
        label="Scrape interval"
        description="How often kube-state-metrics and the DCGM exporter are scraped. Used only where the data doesn't tell."
        {...field('timeInterval')}
      >
        <Input
          id="timeInterval"
          width={20}
          value={settings.timeInterval ?? ''}
          placeholder={defaults.timeInterval}
          onChange={({ currentTarget }) => set({ timeInterval: currentTarget.value || undefined })}
        />
      </Field>
      <Field
        label="SigV4"
        description="Sign requests with AWS credentials. AMP answers no others."
        {...field('sigV4Auth')}
      >
        <Switch
          id="sigV4Auth"
          value={settings.sigV4Auth === true}
          onChange={({ currentTarget }) => set({ sigV4Auth: currentTarget.checked })}
        />
      </Field>
    </FieldSet>
  );
}

function Signing(form: Form) {
  const { options, settings, set, field } = form;
  const authType = settings.sigV4AuthType || defaults.sigV4AuthType;
  return (
    <FieldSet label="SigV4">
      <Field
        label="Credentials"
        description="Where the AWS credentials come from. Grafana refuses kinds that its setting allowed_auth_providers doesn't list."
        {...field('sigV4AuthType')}
      >
        <Combobox
          id="sigV4AuthType"
          width={inputWidth}
          value={authType}
          options={withSaved(authTypes, authType)}
          onChange={({ value }) => set({ sigV4AuthType: value })}
        />
      </Field>
      {authType === 'keys' && <Keys {...form} />}
      {authType === 'credentials' && (
        <Field
          label="Profile"
          description="Name of a profile in the credentials file. Empty: the default profile."
          {...field('sigV4Profile')}
        >
          <Input
            id="sigV4Profile"
            width={inputWidth}
            value={settings.sigV4Profile ?? ''}
            placeholder="default"
            onChange={({ currentTarget }) => set({ sigV4Profile: currentTarget.value || undefined })}
          />
        </Field>
      )}
      <Field
        label="Region"
        description="AWS region of the workspace. Empty: the one in the URL."
        {...field('sigV4Region')}
      >
        <Input
          id="sigV4Region"
          width={inputWidth}
          value={settings.sigV4Region ?? ''}
          placeholder={regionOf(options.url) ?? 'us-east-1'}
          onChange={({ currentTarget }) => set({ sigV4Region: currentTarget.value || undefined })}
        />
      </Field>
      <Field
        label="Role to assume"
        description="ARN of a role that may query the workspace, if the credentials themselves may not: in another account, say."
        {...field('sigV4AssumeRoleArn')}
      >
        <Input
          id="sigV4AssumeRoleArn"
          width={inputWidth}
          value={settings.sigV4AssumeRoleArn ?? ''}
          placeholder="arn:aws:iam::123456789012:role/amp-query"
          onChange={({ currentTarget }) => set({ sigV4AssumeRoleArn: currentTarget.value || undefined })}
        />
      </Field>
      {settings.sigV4AssumeRoleArn && (
        <Field
          label="External ID"
          description="Only if the role's trust policy asks for one."
          {...field('sigV4ExternalId')}
        >
          <Input
            id="sigV4ExternalId"
            width={inputWidth}
            value={settings.sigV4ExternalId ?? ''}
            onChange={({ currentTarget }) => set({ sigV4ExternalId: currentTarget.value || undefined })}
          />
        </Field>
      )}
    </FieldSet>
  );
}

function Keys(form: Form) {
  return (
    <>
      <Secret form={form} name="sigV4AccessKey" label="Access key ID" />
      <Secret form={form} name="sigV4SecretKey" label="Secret access key" />
      <Secret form={form} name="sigV4SessionToken" label="Session token" help="Only with temporary credentials." />
    </>
  );
}

interface SecretProps {
  form: Form;
  name: keyof SecureSettings;
  label: string;
  help?: string;
}

/** Once saved, a secret can be replaced but not read. */
function Secret({ form: { options, setOptions, field }, name, label, help }: SecretProps) {
  const store = (secret: string, isSaved: boolean) =>
    setOptions({
      secureJsonData: { ...options.secureJsonData, [name]: secret },
      secureJsonFields: { ...options.secureJsonFields, [name]: isSaved },
    });
  return (
    <Field label={label} description={help} {...field(`secureJsonData.${name}`)}>
      <SecretInput
        id={name}
        width={inputWidth}
        autoComplete="off"
        isConfigured={options.secureJsonFields?.[name] ?? false}
        value={options.secureJsonData?.[name] ?? ''}
        onChange={({ currentTarget }) => store(currentTarget.value, false)}
        onReset={() => store('', false)}
      />
    </Field>
  );
}

function Price({ settings, set, field }: Form) {
  const { price } = settings;
  const source = price?.source || defaults.priceSource;
  return (
    <FieldSet label="Price">
      {source !== defaults.priceSource && (
        <Field label="Source of prices" {...field('price.source')}>
          <RadioButtonGroup
            aria-label="Source of prices"
            value={source}
            options={withSaved(priceSources, source)}
            onChange={(value) => set({ price: { ...price, source: value } })}
          />
        </Field>
      )}
      <Field
        label="USD per GPU-hour"
        description="What one physical GPU costs for an hour, with its share of the node. Empty: no costs are shown."
        {...field('price.usdPerGpuHour')}
      >
        <NumberInput
          id="price.usdPerGpuHour"
          prefix="$"
          value={price?.usdPerGpuHour}
          onChange={(usdPerGpuHour) => set({ price: { ...price, usdPerGpuHour } })}
        />
      </Field>
    </FieldSet>
  );
}

function BusinessUnits({ settings, set, field }: Form) {
  const { businessUnit } = settings;
  const source = businessUnit?.source || defaults.businessUnitSource;
  return (
    <FieldSet label="Business units">
      <Field
        label="A business unit is"
        description="Each namespace by its own name, or what the first matching rule says."
        {...field('businessUnit.source')}
      >
        <RadioButtonGroup
          aria-label="A business unit is"
          value={source}
          options={withSaved(businessUnitSources, source)}
          onChange={(value) => set({ businessUnit: { ...businessUnit, source: value } })}
        />
      </Field>
      {source === 'rules' && (
        <BusinessUnitRules
          rules={businessUnit?.rules ?? []}
          field={field}
          onChange={(rules) => set({ businessUnit: { ...businessUnit, rules } })}
        />
      )}
    </FieldSet>
  );
}

function Sharing({ settings, set, field }: Form) {
  return (
    <FieldSet label="GPU sharing">
      <Field
        label="Slices per GPU"
        description="How many units of nvidia.com/gpu one GPU is offered as, on nodes whose labels don't tell: 7 for MIG 1g slices of an A100, say."
        {...field('shares.slicesPerGpu')}
      >
        <NumberInput
          id="shares.slicesPerGpu"
          value={settings.shares?.slicesPerGpu}
          placeholder={`${defaults.slicesPerGpu}`}
          onChange={(slicesPerGpu) => set({ shares: { ...settings.shares, slicesPerGpu } })}
        />
      </Field>
    </FieldSet>
  );
}

function Utilization({ settings, set, field }: Form) {
  const { utilization } = settings;
  const unit = utilization?.unit || defaults.utilizationUnit;
  const attribution = utilization?.attribution || defaults.attribution;
  return (
    <FieldSet label="Utilization">
      <Field
        label="Metric"
        description="What tells how busy a GPU is. Empty: DCGM_FI_PROF_GR_ENGINE_ACTIVE, and DCGM_FI_DEV_GPU_UTIL where a GPU lacks it."
        {...field('utilization.metric')}
      >
        <Input
          id="utilization.metric"
          width={inputWidth}
          value={utilization?.metric ?? ''}
          placeholder={defaults.utilizationMetric}
          onChange={({ currentTarget }) =>
            set({ utilization: { ...utilization, metric: currentTarget.value || undefined } })
          }
        />
      </Field>
      <Field
        label="Unit"
        description="Of the metric's values. Auto knows it for the metrics of DCGM."
        {...field('utilization.unit')}
      >
        <RadioButtonGroup
          aria-label="Unit"
          value={unit}
          options={withSaved(utilizationUnits, unit)}
          onChange={(value) => set({ utilization: { ...utilization, unit: value } })}
        />
      </Field>
      <Field
        label="Attribution"
        description="Auto: a pod's own GPUs, else an average of its node, business unit or cluster, marked as estimated. Pod: own GPUs only. Cluster: one average for everyone."
        {...field('utilization.attribution')}
      >
        <RadioButtonGroup
          aria-label="Attribution"
          value={attribution}
          options={withSaved(attributions, attribution)}
          onChange={(value) => set({ utilization: { ...utilization, attribution: value } })}
        />
      </Field>
    </FieldSet>
  );
}

interface NumberInputProps extends Omit<React.ComponentProps<typeof Input>, 'value' | 'onChange' | 'type'> {
  value: number | undefined;
  onChange: (value: number | undefined) => void;
}

function NumberInput({ value, onChange, ...input }: NumberInputProps) {
  return (
    <Input
      {...input}
      type="number"
      step="any"
      width={20}
      value={value ?? ''}
      onChange={({ currentTarget }) => onChange(currentTarget.value === '' ? undefined : Number(currentTarget.value))}
    />
  );
}
