package plugin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
)

const ampURL = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1"

func instance(url, jsonData string, secure ...string) backend.DataSourceInstanceSettings {
	secrets := map[string]string{}
	for i := 0; i+1 < len(secure); i += 2 {
		secrets[secure[i]] = secure[i+1]
	}
	return backend.DataSourceInstanceSettings{URL: url, JSONData: []byte(jsonData), DecryptedSecureJSONData: secrets}
}

func parse(t *testing.T, s backend.DataSourceInstanceSettings) Settings {
	t.Helper()
	parsed, err := ParseSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestSettingsDefaults(t *testing.T) {
	price := 12.0
	want := Settings{
		URL:          "http://localhost:9090",
		Method:       "POST",
		ClusterLabel: "cluster",
		TimeInterval: 30 * time.Second,
		QueryTimeout: time.Minute,
		SigV4:        SigV4{AuthType: "default", Service: "aps"},
		Limits:       Limits{ResponseMB: 64, Series: 50_000, CacheMB: 256},
		Price: Price{
			Source: "flat", USDPerGPUHour: &price, Split: "wholeNode", GPURatio: 0.7,
			Metric: MetricPrice{Per: "gpu", NodeLabel: "node"}, CUR: CUR{Workgroup: "primary"},
		},
		Shares:       Shares{SlicesPerGPU: 1, MIGWeight: "dominant"},
		BusinessUnit: BusinessUnit{Source: "namespace", Label: "business_unit"},
		Utilization:  Utilization{Metric: "auto", Unit: "auto", Attribution: "auto"},
	}

	t.Run("a URL and a price are enough", func(t *testing.T) {
		got := parse(t, instance("http://localhost:9090", `{"price": {"usdPerGpuHour": 12}}`))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})

	t.Run("null and empty texts count as absent, unknown keys are ignored", func(t *testing.T) {
		got := parse(t, instance("http://localhost:9090", `{"price": {"usdPerGpuHour": 12, "source": null, "split": ""}, "sigV4Region": null, "sigV4Auth": null,
			"httpMethod": "", "timeInterval": "", "limits": null, "shares": {"slicesPerGpu": null}, "businessUnit": {"rules": null}, "keepCookies": [], "exemplars": {"a": 1}}`))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})

	t.Run("without jsonData only the price is missing", func(t *testing.T) {
		got := parse(t, backend.DataSourceInstanceSettings{URL: "http://localhost:9090"})
		if got.Price.USDPerGPUHour != nil || got.Limits != want.Limits {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSettingsValues(t *testing.T) {
	got := parse(t, instance(ampURL, `{
		"httpMethod": "GET", "timeInterval": "1m", "queryTimeout": "1m30s", "clusterLabel": "k8s_cluster",
		"sigV4Auth": true, "sigV4AuthType": "keys", "sigV4Region": " eu-west-1 ", "sigV4Profile": "p", "sigV4AssumeRoleArn": "arn:aws:iam::1:role/r", "sigV4ExternalId": "x", "sigv4Service": "aps",
		"limits": {"samplesWarning": 1000000000, "samplesError": 9007199254740992, "responseMB": 8, "series": 9, "cacheMB": 0},
		"price": {"source": "flat", "usdPerGpuHour": 2.5, "split": "ratio", "gpuRatio": 1, "discountPercent": 12.5, "assumeRoleArn": "arn:aws:iam::1:role/p",
			"metric": {"name": "node_gpu_hourly_cost", "per": "node", "nodeLabel": "host"},
			"cur": {"database": "d", "table": "t", "workgroup": "w", "outputLocation": "s3://b", "region": "us-east-1"},
			"rates": [{"instanceType": "p4d.24xlarge", "capacityType": "ON_DEMAND", "region": "us-west-2", "usdPerHour": 21.957642, "from": "2025-06-01T00:00:00Z"},
				{"instanceType": "p4d.24xlarge", "usdPerHour": 20}]},
		"shares": {"slicesPerGpu": 7, "migWeight": "memory"},
		"businessUnit": {"source": "rules", "label": "team", "rules": [{"businessUnit": "Research", "namespaces": "research-.*|lab"}]},
		"utilization": {"metric": "my_gpu_busy", "unit": "percent", "attribution": "cluster"}}`,
		"sigV4AccessKey", " AKID\n", "sigV4SecretKey", "\tSECRET ", "sigV4SessionToken", "TOKEN "))

	t.Run("every key has its field", func(t *testing.T) {
		price := 2.5
		rules := got.BusinessUnit.Rules
		want := Settings{
			URL: ampURL, Method: "GET", ClusterLabel: "k8s_cluster", TimeInterval: time.Minute, QueryTimeout: 90 * time.Second,
			SigV4: SigV4{
				Enabled: true, AuthType: "keys", Region: "eu-west-1", Profile: "p", AssumeRoleARN: "arn:aws:iam::1:role/r", ExternalID: "x", Service: "aps",
				AccessKey: "AKID", SecretKey: "SECRET", SessionToken: "TOKEN",
			},
			Limits: Limits{SamplesWarning: 1e9, SamplesError: 1 << 53, ResponseMB: 8, Series: 9},
			Price: Price{
				Source: "flat", USDPerGPUHour: &price, Split: "ratio", GPURatio: 1, DiscountPercent: 12.5, AssumeRoleARN: "arn:aws:iam::1:role/p",
				Metric: MetricPrice{Name: "node_gpu_hourly_cost", Per: "node", NodeLabel: "host"},
				CUR:    CUR{Database: "d", Table: "t", Workgroup: "w", OutputLocation: "s3://b", Region: "us-east-1"},
				Rates: []Rate{
					{InstanceType: "p4d.24xlarge", CapacityType: "on-demand", Region: "us-west-2", USDPerHour: 21.957642, From: time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)},
					{InstanceType: "p4d.24xlarge", USDPerHour: 20},
				},
			},
			Shares:       Shares{SlicesPerGPU: 7, MIGWeight: "memory"},
			BusinessUnit: BusinessUnit{Source: "rules", Label: "team", Rules: []Rule{{BusinessUnit: "Research", Namespaces: rules[0].Namespaces, Pattern: "research-.*|lab"}}},
			Utilization:  Utilization{Metric: "my_gpu_busy", Unit: "percent", Attribution: "cluster"},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})

	t.Run("a rule matches whole names only, whatever alternatives it has", func(t *testing.T) {
		pattern := got.BusinessUnit.Rules[0].Namespaces
		for name, want := range map[string]bool{"research-a": true, "lab": true, "old-research-a": false, "labs": false, "collab": false} {
			if pattern.MatchString(name) != want {
				t.Errorf("%s: %v", name, !want)
			}
		}
	})

	t.Run("settings print without their keys", func(t *testing.T) {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			shown := fmt.Sprintf(format, got)
			for _, secret := range []string{"AKID", "SECRET", "TOKEN"} {
				if strings.Contains(shown, secret) {
					t.Errorf("%s shows %s: %s", format, secret, shown)
				}
			}
		}
	})
}

func TestSettingsRefused(t *testing.T) {
	const signed = `"sigV4Auth": true, `
	tests := []struct{ jsonData, says string }{
		// Wrong JSON types, which the SDK would ignore or panic on.
		{`[]`, `jsonData: is not a JSON object`},
		{`{"sigV4Auth": "true"}`, `sigV4Auth: found "true", want true or false`},
		{`{"sigV4Region": 1}`, `sigV4Region: found 1, want a text`},
		{`{"basicAuth": "yes"}`, `basicAuth: found "yes", want true or false`},
		{`{"serverName": 7}`, `serverName: found 7, want a text`},
		{`{"timeout": "30"}`, `timeout: found "30", want a number of at least 0`},
		{`{"httpHeaderName1": {"a": 1}}`, `httpHeaderName1: found {"a":1}, want a text`},
		{`{"limits": {"series": "50000"}}`, `limits.series: found "50000", want a whole number from 1 to`},
		{`{"limits": 7}`, `limits: found 7, want an object`},
		{`{"price": {"usdPerGpuHour": "12"}}`, `price.usdPerGpuHour: found "12", want a number of US dollars above 0`},
		{`{"businessUnit": {"rules": {}}}`, `businessUnit.rules: found {}, want a list of objects`},
		{`{"businessUnit": {"rules": [7]}}`, `businessUnit.rules[0]: found 7, want an object`},

		// Values out of bounds.
		{`{"httpMethod": "PUT"}`, `httpMethod: found "PUT", want "POST" or "GET"`},
		{`{"timeInterval": "30"}`, `timeInterval: found "30", want a duration above zero`},
		{`{"queryTimeout": "-1s"}`, `queryTimeout: found "-1s"`},
		{`{"queryTimeout": "0s"}`, `queryTimeout: found "0s"`},
		{`{"clusterLabel": "my cluster"}`, `clusterLabel: found "my cluster", want a valid label name`},
		{`{"limits": {"samplesError": -1}}`, `limits.samplesError: found -1`},
		{`{"limits": {"series": 1.5}}`, `limits.series: found 1.5`},
		{`{"limits": {"responseMB": 0}}`, `limits.responseMB: found 0, want a whole number from 1 to`},
		{`{"limits": {"cacheMB": 1e300}}`, `limits.cacheMB: found 1e+300`},
		{`{"shares": {"slicesPerGpu": 0}}`, `shares.slicesPerGpu: found 0`},
		{`{"shares": {"migWeight": "equal"}}`, `shares.migWeight: found "equal", want "dominant" or "compute" or "memory"`},

		// Prices.
		{`{"price": {"usdPerGpuHour": 0}}`, `price.usdPerGpuHour: found 0`},
		{`{"price": {"usdPerGpuHour": -1}}`, `price.usdPerGpuHour: found -1`},
		{`{"price": {"usdPerGpuHour": ""}}`, `price.usdPerGpuHour: found ""`},
		{`{"price": {"usdPerGpuHour": "NaN"}}`, `price.usdPerGpuHour: found "NaN"`},
		{`{"price": {"gpuRatio": 0}}`, `price.gpuRatio: found 0`},
		{`{"price": {"gpuRatio": 1.1}}`, `price.gpuRatio: found 1.1`},
		{`{"price": {"discountPercent": 100}}`, `price.discountPercent: found 100`},
		{`{"price": {"split": "half"}}`, `price.split: found "half"`},
		{`{"price": {"metric": {"name": "a-b"}}}`, `price.metric.name: found "a-b", want a valid metric name`},
		{`{"price": {"metric": {"per": "pod"}}}`, `price.metric.per: found "pod"`},
		{`{"price": {"rates": [{"usdPerHour": 1}]}}`, `price.rates[0].instanceType: found nothing`},
		{`{"price": {"rates": [{"instanceType": "a"}]}}`, `price.rates[0].usdPerHour: found nothing`},
		{`{"price": {"rates": [{"instanceType": "a", "usdPerHour": 0}]}}`, `price.rates[0].usdPerHour: found 0`},
		{`{"price": {"rates": [{"instanceType": "a", "usdPerHour": 1, "capacityType": "cheap"}]}}`, `price.rates[0].capacityType: found "cheap"`},
		{`{"price": {"rates": [{"instanceType": "a", "usdPerHour": 1, "from": "June"}]}}`, `price.rates[0].from: found "June"`},
		{`{"price": {"rates": [{"instanceType": "a", "usdPerHour": 1, "capacityType": "SPOT"}, {"instanceType": "a", "usdPerHour": 2, "capacityType": "spot"}]}}`,
			`price.rates[1]: has the same instanceType, capacityType, region and from as price.rates[0]`},

		// Valid, but not built yet.
		{`{"price": {"source": "instanceType"}}`, `price.source "instanceType" is not available in this version; use "flat"`},
		{`{"price": {"source": "cur"}}`, `price.source "cur" is not available in this version; use "flat"`},
		{`{"price": {"source": "free"}}`, `price.source: found "free", want "flat"`},
		{`{"businessUnit": {"source": "podLabel"}}`, `businessUnit.source "podLabel" is not available in this version; use "namespace" or "rules"`},
		{`{"businessUnit": {"source": "namespaceLabel"}}`, `businessUnit.source "namespaceLabel" is not available`},
		{`{"businessUnit": {"source": "team"}}`, `businessUnit.source: found "team", want "namespace" or "rules"`},

		// Business units.
		{`{"businessUnit": {"source": "rules"}}`, `businessUnit.rules: found nothing`},
		{`{"businessUnit": {"source": "rules", "rules": []}}`, `businessUnit.rules: found []`},
		{`{"businessUnit": {"rules": [{"businessUnit": "A", "namespaces": "a"}, {"businessUnit": "B", "namespaces": "b("}]}}`, `businessUnit.rules[1].namespaces: found "b(", want a valid regular expression`},
		{`{"businessUnit": {"rules": [{"businessUnit": "A", "namespaces": "a)|(b"}]}}`, `businessUnit.rules[0].namespaces: found "a)|(b"`},
		{`{"businessUnit": {"rules": [{"businessUnit": "A"}]}}`, `businessUnit.rules[0].namespaces: found nothing`},
		{`{"businessUnit": {"rules": [{"businessUnit": " ", "namespaces": "a"}]}}`, `businessUnit.rules[0].businessUnit: found " "`},
		{`{"businessUnit": {"rules": [{"businessUnit": "__idle__", "namespaces": "a"}]}}`, `businessUnit.rules[0].businessUnit: found "__idle__", want another name`},
		{`{"businessUnit": {"rules": [{"businessUnit": "__unknown__", "namespaces": "a"}]}}`, `businessUnit.rules[0].businessUnit: found "__unknown__"`},

		// Utilization.
		{`{"utilization": {"metric": "my_gpu_busy"}}`, `utilization.unit: the name of my_gpu_busy does not tell its unit, want "ratio" or "percent"`},
		{`{"utilization": {"metric": "a b"}}`, `utilization.metric: found "a b"`},
		{`{"utilization": {"unit": "permille"}}`, `utilization.unit: found "permille"`},
		{`{"utilization": {"attribution": "node"}}`, `utilization.attribution: found "node", want "auto" or "pod" or "cluster"`},

		// SigV4.
		{`{"sigV4AuthType": "arn"}`, `sigV4AuthType: found "arn", want "default" or "keys"`},
		{`{` + signed + `"sigV4AuthType": "keys"}`, `secureJsonData.sigV4AccessKey: is empty`},
		{`{` + signed + `"sigV4AuthType": "keys"}`, `secureJsonData.sigV4SecretKey: is empty`},
		{`{` + signed + `"basicAuth": true}`, `basicAuth: can't be combined with sigV4Auth`},
		{`{` + signed + `"httpHeaderName1": "authorization"}`, `httpHeaderName1: the header Authorization is part of the signature`},
		{`{` + signed + `"httpHeaderName1": "x-amz-date"}`, `httpHeaderName1: the header X-Amz-Date is part of the signature`},
	}
	for _, test := range tests {
		t.Run(test.jsonData+" is refused", func(t *testing.T) {
			got, err := ParseSettings(instance(ampURL, test.jsonData))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %s", err, test.says)
			}
			if !reflect.DeepEqual(got, Settings{}) {
				t.Errorf("settings come with the error: %+v", got)
			}
		})
	}

	t.Run("SigV4 without a region that the URL tells wants one", func(t *testing.T) {
		_, err := ParseSettings(instance("https://prometheus.example.com", `{"sigV4Auth": true}`))
		if err == nil || !strings.HasPrefix(err.Error(), "sigV4Region: is empty") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("all problems are told, one a line, each once", func(t *testing.T) {
		_, err := ParseSettings(instance("", `{"basicAuth": 1, "httpMethod": "PUT", "price": {"usdPerGpuHour": 0}, "shares": 5}`))
		if err == nil {
			t.Fatal("accepted")
		}
		lines := strings.Split(err.Error(), "\n")
		want := []string{"url: ", "basicAuth: ", "httpMethod: ", "price.usdPerGpuHour: ", "shares: "}
		if len(lines) != len(want) {
			t.Fatalf("got %q", lines)
		}
		for i, prefix := range want {
			if !strings.HasPrefix(lines[i], prefix) {
				t.Errorf("line %d is %q, want %s...", i, lines[i], prefix)
			}
		}
	})
}

func TestSettingsUtilizationUnit(t *testing.T) {
	for _, metric := range []string{"auto", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "dcgm_fi_prof_sm_active", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL", "dcgm_fi_dev_gpu_util"} {
		t.Run("the unit of "+metric+" is known", func(t *testing.T) {
			parse(t, instance(ampURL, fmt.Sprintf(`{"utilization": {"metric": %q}}`, metric)))
		})
	}
}

func TestSettingsURL(t *testing.T) {
	for raw, want := range map[string]string{
		" " + ampURL + "/ \n":                                   ampURL,
		ampURL + "/api/v1/query":                                ampURL,
		ampURL + "/api/v1/query_range/":                         ampURL,
		ampURL + "/api/v1/remote_write":                         ampURL,
		ampURL + "/api/v1":                                      ampURL,
		ampURL + "/api/v1/":                                     ampURL,
		ampURL + "/api/v1/label/a/values":                       ampURL,
		"http://localhost:9090":                                 "http://localhost:9090",
		"HTTPS://mimir.example.com:8080/prometheus/api/v1/":     "https://mimir.example.com:8080/prometheus",
		"https://example.com/api/v10":                           "https://example.com/api/v10",
		"https://example.com/tenant%2Fa//":                      "https://example.com/tenant%2Fa",
		"https://[2001:db8::1]:9090/select/0/prometheus/api/v1": "https://[2001:db8::1]:9090/select/0/prometheus",
	} {
		t.Run(fmt.Sprintf("%q is forgiven", raw), func(t *testing.T) {
			if got := parse(t, instance(raw, `{}`)).URL; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}

	for raw, says := range map[string]string{
		"":                                    "url: is empty",
		"  ":                                  "url: is empty",
		"prometheus:9090":                     "url: must begin with https:// or http://",
		"file:///etc/passwd":                  "url: must begin with https:// or http://",
		"//example.com":                       "url: must begin with",
		"https://":                            "url: names no host",
		"https://:9090":                       "url: names no host",
		"https://user:CANARY@example.com":     "url: must not contain a user or password",
		"https://user:CANARY@exa mple.com":    "url: is not a valid URL",
		"https://example.com/api/v1?query=up": "url: must not contain ? or #",
		"https://example.com/?":               "url: must not contain ? or #",
		"https://example.com/#graph":          "url: must not contain ? or #",
	} {
		t.Run(fmt.Sprintf("%q is refused", raw), func(t *testing.T) {
			_, err := ParseSettings(instance(raw, `{}`))
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("http is refused with SigV4, loopback apart", func(t *testing.T) {
		const signed = `{"sigV4Auth": true, "sigV4Region": "us-east-1"}`
		if _, err := ParseSettings(instance("http://prometheus.example.com", signed)); err == nil || !strings.Contains(err.Error(), "url: http is refused with sigV4Auth") {
			t.Errorf("got %v", err)
		}
		for _, host := range []string{"localhost:1", "127.0.0.1:1", "[::1]:1"} {
			parse(t, instance("http://"+host, signed))
		}
	})
}

func TestSettingsOfAMP(t *testing.T) {
	for host, region := range map[string]string{
		"aps-workspaces.eu-west-1.amazonaws.com":                          "eu-west-1",
		"APS-Workspaces.EU-West-1.amazonaws.com":                          "eu-west-1",
		"aps-workspaces.cn-north-1.amazonaws.com.cn":                      "cn-north-1",
		"aps-workspaces-fips.us-gov-west-1.amazonaws.com":                 "us-gov-west-1",
		"aps-workspaces.us-east-1.api.aws":                                "us-east-1",
		"vpce-0a1b-2c3d.aps-workspaces.ap-southeast-2.vpce.amazonaws.com": "ap-southeast-2",
		"aps-workspaces.eu-west-1.amazonaws.com:443":                      "eu-west-1",
		"prometheus.example.com":                                          "",
		"aps-workspaces.eu-west-1.amazonaws.com.example.com":              "",
		"evil-aps-workspaces.eu-west-1.amazonaws.com":                     "",
		"aps-workspaces.eu-west-1.amazonaws.community":                    "",
	} {
		t.Run(fmt.Sprintf("%s tells the region %q", host, region), func(t *testing.T) {
			got := parse(t, instance("https://"+host+"/workspaces/ws-1", `{}`)).SigV4
			if got.Region != region || got.Service != "aps" {
				t.Errorf("got %s, %s", got.Region, got.Service)
			}
		})
	}

	warn := func(t *testing.T, url, jsonData, says string) {
		t.Helper()
		got := parse(t, instance(url, jsonData)).Warnings
		if says == "" && len(got) > 0 || says != "" && (len(got) != 1 || !strings.Contains(got[0], says)) {
			t.Errorf("got %q, want %q", got, says)
		}
	}
	t.Run("AMP with SigV4 gives no warning", func(t *testing.T) {
		warn(t, ampURL, `{"sigV4Auth": true, "sigV4Region": "eu-west-1"}`, "")
	})
	t.Run("AMP without SigV4 is warned of", func(t *testing.T) {
		warn(t, ampURL, `{}`, "sigV4Auth: AMP answers signed requests only")
	})
	t.Run("a region that contradicts the URL is used, and warned of", func(t *testing.T) {
		warn(t, ampURL, `{"sigV4Auth": true, "sigV4Region": "us-east-1"}`, `sigV4Region: is "us-east-1", but the URL is in "eu-west-1"`)
	})
	t.Run("a service other than AMP's is used, and warned of", func(t *testing.T) {
		warn(t, ampURL, `{"sigV4Auth": true, "sigv4Service": "execute-api"}`, `sigv4Service: is "execute-api"`)
	})
	t.Run("http is warned of, loopback apart", func(t *testing.T) {
		warn(t, "http://prometheus.example.com", `{}`, "url: http lets others read")
		warn(t, "http://localhost:9090", `{}`, "")
	})
}
