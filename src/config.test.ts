import { regionOf, type SecureSettings, type Settings, settingsProblems } from './config';
import { fixtures } from './testing/fixtures';

interface SettingsFixture {
  url: string;
  jsonData: Settings;
  secureJsonData?: SecureSettings;
  refused?: string[];
}

describe('what the backend accepts or refuses, the editor does too', () => {
  test.each(fixtures<SettingsFixture>('settings'))('%s', (_, { url, jsonData, secureJsonData, refused = [] }) => {
    const problems = settingsProblems({ url, jsonData, secureJsonData, secureJsonFields: {} });
    expect(problems.map(({ field }) => field).sort()).toEqual([...refused].sort());
  });
});

describe('settings', () => {
  test('keys that are saved already are not missing', () => {
    const problems = settingsProblems({
      url: 'https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1',
      jsonData: { sigV4Auth: true, sigV4AuthType: 'keys' },
      secureJsonFields: { sigV4AccessKey: true, sigV4SecretKey: true },
    });
    expect(problems).toEqual([]);
  });

  test.each([
    ['https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1', 'eu-west-1'],
    ['https://APS-Workspaces.EU-West-1.amazonaws.com/', 'eu-west-1'],
    ['https://aps-workspaces-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
    ['https://aps-workspaces.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
    ['https://aps-workspaces.us-east-1.api.aws', 'us-east-1'],
    ['https://vpce-0a1b.aps-workspaces.us-west-2.vpce.amazonaws.com', 'us-west-2'],
    ['https://evil-aps-workspaces.eu-west-1.amazonaws.com', undefined],
    ['https://aps-workspaces.eu-west-1.amazonaws.com.example.com', undefined],
    ['https://prometheus.example.com', undefined],
    ['no URL', undefined],
  ])('the region of %s is %s', (url, region) => {
    expect(regionOf(url)).toBe(region);
  });
});
