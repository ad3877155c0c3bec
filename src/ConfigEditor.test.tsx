import React, { useState } from 'react';
import { type DataSourceSettings } from '@grafana/data';
import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { type SecureSettings, type Settings } from './config';
import { ConfigEditor } from './ConfigEditor';

type Options = DataSourceSettings<Settings, SecureSettings>;

const ampURL = 'https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1';

/** Shows the editor as Grafana does, which keeps what it is given until it is saved. */
function configure(saved: Partial<Options> = {}) {
  const onOptionsChange = jest.fn<void, [Options]>();

  function Page() {
    const [options, setOptions] = useState({ url: ampURL, jsonData: {}, secureJsonFields: {}, ...saved } as Options);
    const keep = (changed: Options) => {
      onOptionsChange(changed);
      setOptions(changed);
    };
    return <ConfigEditor options={options} onOptionsChange={keep} />;
  }

  render(<Page />);
  return { user: userEvent.setup(), onOptionsChange, kept: () => onOptionsChange.mock.lastCall?.[0] };
}

const signed = (settings: Settings = {}): Partial<Options> => ({ jsonData: { sigV4Auth: true, ...settings } });

test('a URL and a price are all that has to be entered', async () => {
  const { user, kept } = configure({ url: '' });
  await user.type(screen.getByLabelText(/^URL/), 'http://localhost:9090');
  await user.type(screen.getByLabelText(/^USD per GPU-hour/), '12.5');
  expect(kept()).toMatchObject({ url: 'http://localhost:9090', jsonData: { price: { usdPerGpuHour: 12.5 } } });
  expect(screen.queryByRole('alert')).not.toBeInTheDocument();
});

test('nothing is changed before the user does something', () => {
  const { onOptionsChange } = configure();
  expect(onOptionsChange).not.toHaveBeenCalled();
});

test('the URL shows what one of AMP looks like', () => {
  configure({ url: '' });
  expect(screen.getByLabelText(/^URL/)).toHaveAttribute(
    'placeholder',
    'https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-...'
  );
});

describe('SigV4', () => {
  const allFields = [
    /^Access key ID/,
    /^Secret access key/,
    /^Session token/,
    /^Profile/,
    /^Region/,
    /^Role to assume/,
  ];
  const shown = () => allFields.filter((label) => screen.queryByLabelText(label) !== null);

  test('its fields appear when it is switched on', async () => {
    const { user, kept } = configure();
    expect(shown()).toEqual([]);
    await user.click(screen.getByRole('switch', { name: /^SigV4/ }));
    expect(kept()?.jsonData).toMatchObject({ sigV4Auth: true });
    expect(shown()).toEqual([/^Region/, /^Role to assume/]);
  });

  test.each([
    ['default', [/^Region/, /^Role to assume/]],
    ['keys', [/^Access key ID/, /^Secret access key/, /^Session token/, /^Region/, /^Role to assume/]],
    ['credentials', [/^Profile/, /^Region/, /^Role to assume/]],
    ['ec2_iam_role', [/^Region/, /^Role to assume/]],
    ['grafana_assume_role', [/^Region/, /^Role to assume/]],
  ])('credentials of kind %s show the fields that they need', (sigV4AuthType, needed) => {
    configure(signed({ sigV4AuthType }));
    expect(shown()).toEqual(needed);
  });

  test('the kind of credentials is chosen from a list', async () => {
    const { user, kept } = configure(signed());
    await user.click(screen.getByLabelText(/^Credentials/));
    await user.click(await screen.findByRole('option', { name: /Access and secret key/ }));
    expect(kept()?.jsonData).toMatchObject({ sigV4AuthType: 'keys' });
    expect(screen.getByLabelText(/^Secret access key/)).toBeVisible();
  });

  test('a kind of credentials that is not known here is shown and explained', () => {
    configure(signed({ sigV4AuthType: 'arn' }));
    expect(screen.getByLabelText(/^Credentials/)).toHaveValue('arn');
    expect(screen.getByRole('alert')).toHaveTextContent('"arn" won\'t do: want default or keys');
  });

  test('the region is that of the URL until another is entered', async () => {
    const { user, kept } = configure(signed());
    expect(screen.getByLabelText(/^Region/)).toHaveAttribute('placeholder', 'us-west-2');
    await user.type(screen.getByLabelText(/^Region/), 'eu-west-1');
    expect(kept()?.jsonData).toMatchObject({ sigV4Region: 'eu-west-1' });
    await user.clear(screen.getByLabelText(/^Region/));
    expect(kept()?.jsonData.sigV4Region).toBeUndefined();
  });

  test('an external ID is asked for once there is a role', async () => {
    const { user, kept } = configure(signed());
    expect(screen.queryByLabelText(/^External ID/)).not.toBeInTheDocument();
    await user.type(screen.getByLabelText(/^Role to assume/), 'arn:aws:iam::1:role/r');
    await user.type(screen.getByLabelText(/^External ID/), 'x');
    expect(kept()?.jsonData).toMatchObject({ sigV4AssumeRoleArn: 'arn:aws:iam::1:role/r', sigV4ExternalId: 'x' });
  });

  test('a profile is entered', async () => {
    const { user, kept } = configure(signed({ sigV4AuthType: 'credentials' }));
    await user.type(screen.getByLabelText(/^Profile/), 'finops');
    expect(kept()?.jsonData).toMatchObject({ sigV4Profile: 'finops' });
  });

  test('a secret goes where Grafana encrypts it, and is not readable while it is typed', async () => {
    const { user, kept } = configure(signed({ sigV4AuthType: 'keys' }));
    await user.type(screen.getByLabelText(/^Secret access key/), 's3cr3t');
    expect(kept()?.secureJsonData).toEqual({ sigV4SecretKey: 's3cr3t' });
    expect(JSON.stringify(kept()?.jsonData)).not.toContain('s3cr3t');
    expect(screen.getByLabelText(/^Secret access key/)).toHaveAttribute('type', 'password');
  });

  test('a saved secret can only be replaced', async () => {
    const { user, kept } = configure({
      ...signed({ sigV4AuthType: 'keys' }),
      secureJsonFields: { sigV4AccessKey: true, sigV4SecretKey: true },
    });
    expect(screen.getByLabelText(/^Secret access key/)).toBeDisabled();
    expect(screen.getByLabelText(/^Secret access key/)).toHaveValue('configured');

    await user.click(screen.getAllByRole('button', { name: 'Reset' })[1]);
    expect(kept()).toMatchObject({
      secureJsonFields: { sigV4AccessKey: true, sigV4SecretKey: false },
      secureJsonData: { sigV4SecretKey: '' },
    });
    expect(screen.getByLabelText(/^Secret access key/)).toBeEnabled();
    expect(screen.getByLabelText(/^Secret access key/)).toHaveValue('');
  });

  test('a missing key is told once its field has been left', async () => {
    const { user } = configure(signed({ sigV4AuthType: 'keys' }));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    await user.click(screen.getByLabelText(/^Access key ID/));
    await user.tab();
    expect(screen.getByRole('alert')).toHaveTextContent('Is empty; enter the key.');
  });
});

describe('invalid input is explained at its field', () => {
  test.each([
    [/^URL/, 'prometheus:9090', 'Must begin with https:// or http://'],
    [/^Scrape interval/, '30', '"30" won\'t do: want a duration above zero'],
    [/^USD per GPU-hour/, '0', "0 won't do: want a number of US dollars above 0"],
    [/^Slices per GPU/, '1.5', "1.5 won't do: want a whole number of at least 1"],
    [/^Metric/, 'gpu busy', '"gpu busy" won\'t do: want auto or the name of a metric'],
    [/^Metric/, 'gpu_busy', "The name of gpu_busy doesn't tell its unit"],
  ])('the field %s says why %s is wrong', async (label, typed, explanation) => {
    const { user } = configure({ url: label.test('URL') ? '' : ampURL });
    await user.type(screen.getByLabelText(label), typed);
    expect(screen.getByRole('alert')).toHaveTextContent(explanation);
  });

  test('an empty URL is no news before the field has been left', async () => {
    const { user } = configure({ url: '' });
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    await user.click(screen.getByLabelText(/^URL/));
    await user.tab();
    expect(screen.getByRole('alert')).toHaveTextContent('Is empty; enter the URL of the AMP workspace');
  });

  test('a price that is cleared is absent, not zero', async () => {
    const { user, kept } = configure({ jsonData: { price: { usdPerGpuHour: 12 } } });
    await user.clear(screen.getByLabelText(/^USD per GPU-hour/));
    expect(kept()?.jsonData.price?.usdPerGpuHour).toBeUndefined();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });
});

describe('the other settings', () => {
  test('each is kept at its own key, beside those that the editor does not show', async () => {
    const hidden = {
      httpMethod: 'GET',
      limits: { series: 9 },
      price: { rates: [{ instanceType: 'p4d.24xlarge', usdPerHour: 20 }] },
      shares: { migWeight: 'memory' },
      businessUnit: { label: 'team' },
    };
    const { user, kept } = configure({ jsonData: hidden });
    await user.type(screen.getByLabelText(/^Scrape interval/), '1m');
    await user.type(screen.getByLabelText(/^USD per GPU-hour/), '3');
    await user.type(screen.getByLabelText(/^Slices per GPU/), '7');
    await user.type(screen.getByLabelText(/^Metric/), 'gpu_busy');
    await user.click(screen.getByRole('radio', { name: 'Percent (0-100)' }));
    await user.click(screen.getByRole('radio', { name: 'Cluster' }));
    expect(kept()?.jsonData).toEqual({
      ...hidden,
      timeInterval: '1m',
      price: { ...hidden.price, usdPerGpuHour: 3 },
      shares: { ...hidden.shares, slicesPerGpu: 7 },
      utilization: { metric: 'gpu_busy', unit: 'percent', attribution: 'cluster' },
    });
  });

  test('values that only another version knows are shown, explained and kept', async () => {
    const saved = { price: { source: 'cur' }, businessUnit: { source: 'podLabel', label: 'team' } };
    const { user, kept } = configure({ jsonData: saved });
    expect(screen.getByRole('radio', { name: 'cur' })).toBeChecked();
    expect(screen.getByRole('radio', { name: 'podLabel' })).toBeChecked();
    expect(screen.getByText(/"cur" is not available in this version/)).toBeVisible();
    expect(screen.getByText(/"podLabel" is not available in this version/)).toBeVisible();

    await user.type(screen.getByLabelText(/^Slices per GPU/), '7');
    expect(kept()?.jsonData).toMatchObject(saved);
    await user.click(screen.getByRole('radio', { name: 'One price' }));
    expect(kept()?.jsonData.price).toEqual({ source: 'flat' });
  });

  test('what this version can not do is not offered', () => {
    configure();
    for (const name of [/label/i, /instance type/i, /price list/i]) {
      expect(screen.queryByRole('radio', { name })).not.toBeInTheDocument();
    }
  });
});

describe('rules that map namespaces to business units', () => {
  test('are added, filled in and removed', async () => {
    const { user, kept } = configure();
    await user.click(screen.getByRole('radio', { name: 'Rules' }));
    expect(screen.getByText('There is no rule; add at least one.')).toBeVisible();

    await user.click(screen.getByRole('button', { name: 'Add rule' }));
    await user.type(screen.getByLabelText('Business unit'), 'Research');
    await user.type(screen.getByLabelText(/^Namespaces/), 'research-.*');
    await user.click(screen.getByRole('button', { name: 'Add rule' }));
    await user.type(screen.getAllByLabelText('Business unit')[1], 'Vision');
    expect(kept()?.jsonData.businessUnit).toEqual({
      source: 'rules',
      rules: [
        { businessUnit: 'Research', namespaces: 'research-.*' },
        { businessUnit: 'Vision', namespaces: '' },
      ],
    });

    await user.click(screen.getByRole('button', { name: 'Remove rule 1' }));
    expect(kept()?.jsonData.businessUnit?.rules).toEqual([{ businessUnit: 'Vision', namespaces: '' }]);
  });

  test('say what is wrong with each of them', () => {
    const rules = [{ businessUnit: '__idle__', namespaces: 'a' }];
    configure({ jsonData: { businessUnit: { source: 'rules', rules } } });
    expect(screen.getByRole('alert')).toHaveTextContent('Is the name of a special row');
  });
});

test('provisioned settings say that they are, and can not be changed', async () => {
  const rules = [{ businessUnit: 'Research', namespaces: 'research' }];
  const { user, onOptionsChange } = configure({
    readOnly: true,
    jsonData: {
      sigV4Auth: true,
      sigV4AuthType: 'keys',
      sigV4AssumeRoleArn: 'arn:aws:iam::1:role/r',
      price: { source: 'cur' },
      businessUnit: { source: 'rules', rules },
    },
    secureJsonFields: { sigV4AccessKey: true },
  });
  expect(screen.getByText('These settings are provisioned')).toBeVisible();

  const controls = ['textbox', 'spinbutton', 'combobox', 'switch', 'radio', 'button'].flatMap((role) =>
    screen.queryAllByRole(role)
  );
  expect(controls.length).toBeGreaterThan(15);
  for (const control of controls) {
    expect(control).toBeDisabled();
    await user.click(control);
  }
  expect(onOptionsChange).not.toHaveBeenCalled();
});
