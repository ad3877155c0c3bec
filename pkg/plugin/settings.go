package plugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
)

// Settings is the configuration of one data source, complete and valid.
type Settings struct {
	URL          string // base of the API, without a trailing slash
	Method       string // "POST" or "GET"
	ClusterLabel string
	TimeInterval time.Duration // scrape interval where the data doesn't tell
	QueryTimeout time.Duration

	SigV4        SigV4
	Limits       Limits
	Price        Price
	Shares       Shares
	BusinessUnit BusinessUnit
	Utilization  Utilization

	Warnings []string // what works, or may work, but is hardly meant
}

// SigV4 says how requests are signed. It prints without its keys.
type SigV4 struct {
	Enabled       bool
	AuthType      string // "default", "keys", "credentials", "ec2_iam_role" or "grafana_assume_role"
	Region        string
	Profile       string
	AssumeRoleARN string
	ExternalID    string
	Service       string
	AccessKey     string
	SecretKey     string
	SessionToken  string
}

// String keeps the keys out of whatever the settings are printed to.
func (s SigV4) String() string {
	return fmt.Sprintf("{enabled:%t authType:%s region:%s service:%s}", s.Enabled, s.AuthType, s.Region, s.Service)
}

// GoString does the same for %#v.
func (s SigV4) GoString() string { return s.String() }

// Limits bound what is asked of AMP and kept.
type Limits struct {
	SamplesWarning int64 // samples processed per query above which AMP warns; 0 = AMP's own
	SamplesError   int64 // samples processed per query above which AMP refuses; 0 = AMP's own
	ResponseMB     int   // MiB of one answer, decompressed
	Series         int   // series of one answer
	CacheMB        int   // MiB
}

// Price says what a GPU-hour costs.
type Price struct {
	Source          string   // "flat"
	USDPerGPUHour   *float64 // USD per physical GPU and hour; nil = absent
	Split           string   // "wholeNode", "acceleratorWeighted" or "ratio"
	GPURatio        float64  // above 0, at most 1
	DiscountPercent float64  // 0 to below 100
	Metric          MetricPrice
	AssumeRoleARN   string
	CUR             CUR
	Rates           []Rate
}

// MetricPrice is a price that a Prometheus metric tells.
type MetricPrice struct {
	Name      string
	Per       string // "gpu" or "node"
	NodeLabel string
}

// CUR is where AWS Cost and Usage Reports are queried.
type CUR struct{ Database, Table, Workgroup, OutputLocation, Region string }

// Rate is a contracted price of an instance type. Empty fields mean any.
type Rate struct {
	InstanceType string
	CapacityType string // "on-demand", "spot", "capacity-block" or "reserved"
	Region       string
	USDPerHour   float64   // USD per node and hour
	From         time.Time // zero = always
}

// Shares says what part of a GPU a unit is, where the nodes' labels don't.
type Shares struct {
	SlicesPerGPU int
	MIGWeight    string // "dominant", "compute" or "memory"
}

// BusinessUnit says which business unit a pod belongs to.
type BusinessUnit struct {
	Source string // "namespace" or "rules"
	Label  string
	Rules  []Rule // first match wins
}

// Rule gives the namespaces that match to a business unit.
type Rule struct {
	BusinessUnit string
	Namespaces   *regexp.Regexp // anchored
	Pattern      string         // as typed
}

// Utilization says how use is measured.
type Utilization struct {
	Metric      string // "auto" or a metric's name
	Unit        string // "auto", "ratio" or "percent"
	Attribution string // "auto", "pod" or "cluster"
}

const (
	maxExact = 1 << 53 // the largest integer that JSON numbers keep exactly
	maxMB    = 1 << 20 // a tebibyte
)

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
)

// ParseSettings reads and checks the settings of a data source. The error names everything that is wrong, a line for
// each: the key's path, what was found and what is allowed. Unknown keys are ignored.
func ParseSettings(s backend.DataSourceInstanceSettings) (Settings, error) {
	values, err := parseJSONData(s.JSONData)
	if err != nil {
		return Settings{}, err
	}
	found := &problems{}
	f := fields{values: values, problems: found}

	where, err := parseEndpoint(s.URL)
	if err != nil {
		found.add("%w", err)
	}
	checkHTTPKeys(f)
	parsed := Settings{
		URL:          where.url,
		Method:       f.choice("httpMethod", http.MethodPost, http.MethodPost, http.MethodGet),
		ClusterLabel: f.textLike("clusterLabel", "cluster", labelName.MatchString, "a valid label name"),
		TimeInterval: f.duration("timeInterval", 30*time.Second),
		QueryTimeout: f.duration("queryTimeout", time.Minute),
		SigV4:        parseSigV4(f, s.DecryptedSecureJSONData, where),
		Limits:       parseLimits(f.object("limits")),
		Price:        parsePrice(f.object("price")),
		Shares:       parseShares(f.object("shares")),
		BusinessUnit: parseBusinessUnit(f.object("businessUnit")),
		Utilization:  parseUtilization(f.object("utilization")),
	}
	if parsed.SigV4.Enabled {
		checkSigned(f, s, where)
	}
	parsed.Warnings = warnings(parsed.SigV4, where)
	if err := found.err(); err != nil {
		return Settings{}, err
	}
	return parsed, nil
}

// parseJSONData drops nulls: they count as absent.
func parseJSONData(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return map[string]any{}, nil
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("jsonData: is not a JSON object: %w", err)
	}
	for key, value := range values {
		if value == nil {
			delete(values, key)
		}
	}
	return values, nil
}

// checkHTTPKeys checks the keys that the SDK reads by itself. It takes their types for granted: one kind of wrong type
// panics there, another silently turns a setting off.
func checkHTTPKeys(f fields) {
	for _, key := range []string{"access", "url", "basicAuthUser", "serverName", "secureSocksProxyUsername"} {
		f.text(key, "")
	}
	for _, key := range []string{"basicAuth", "tlsAuth", "tlsAuthWithCACert", "tlsSkipVerify", "enableSecureSocksProxy"} {
		f.flag(key)
	}
	notNegative := func(v float64) bool { return v >= 0 }
	for _, key := range []string{
		"timeout", "dialTimeout", "keepAlive", "httpKeepAlive", "httpTLSHandshakeTimeout", "httpExpectContinueTimeout",
		"httpMaxConnsPerHost", "httpMaxIdleConns", "httpMaxIdleConnsPerHost", "httpIdleConnTimeout",
	} {
		f.number(key, 0, notNegative, "a number of at least 0")
	}
	for _, key := range headerNameKeys(f) {
		f.text(key, "")
	}
}

func headerNameKeys(f fields) []string {
	var keys []string
	for key := range f.values {
		if strings.HasPrefix(key, "httpHeaderName") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func parseSigV4(f fields, secure map[string]string, where endpoint) SigV4 {
	secret := func(key string) string { return strings.TrimSpace(secure[key]) }
	s := SigV4{
		Enabled:       f.flag("sigV4Auth"),
		AuthType:      f.choice("sigV4AuthType", "default", "default", "keys", "credentials", "ec2_iam_role", "grafana_assume_role"),
		Region:        f.text("sigV4Region", where.region),
		Profile:       f.text("sigV4Profile", ""),
		AssumeRoleARN: f.text("sigV4AssumeRoleArn", ""),
		ExternalID:    f.text("sigV4ExternalId", ""),
		Service:       f.text("sigv4Service", "aps"),
		AccessKey:     secret("sigV4AccessKey"),
		SecretKey:     secret("sigV4SecretKey"),
		SessionToken:  secret("sigV4SessionToken"),
	}
	if !s.Enabled {
		return s
	}
	if s.Region == "" {
		f.problems.add("sigV4Region: is empty, want the region to sign for, which only an AMP URL tells by itself")
	}
	if s.AuthType == "keys" && s.AccessKey == "" {
		f.problems.add(`secureJsonData.sigV4AccessKey: is empty, want an access key, as sigV4AuthType is "keys"`)
	}
	if s.AuthType == "keys" && s.SecretKey == "" {
		f.problems.add(`secureJsonData.sigV4SecretKey: is empty, want a secret key, as sigV4AuthType is "keys"`)
	}
	return s
}

// checkSigned refuses what a signature doesn't go with.
func checkSigned(f fields, s backend.DataSourceInstanceSettings, where endpoint) {
	if where.plain && !where.loopback {
		f.problems.add("url: http is refused with sigV4Auth, want https, as a signed request must not be read by others")
	}
	if s.BasicAuthEnabled || s.User != "" || f.values["basicAuth"] == true {
		f.problems.add("basicAuth: can't be combined with sigV4Auth; turn one of them off")
	}
	for _, key := range headerNameKeys(f) {
		name, _ := f.values[key].(string)
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if name == "Authorization" || strings.HasPrefix(name, "X-Amz-") {
			f.problems.add("%s: the header %s is part of the signature; remove it, or turn sigV4Auth off", key, name)
		}
	}
}

func warnings(s SigV4, where endpoint) []string {
	var found []string
	if where.amp && !s.Enabled {
		found = append(found, "sigV4Auth: AMP answers signed requests only; set it to true")
	}
	if where.amp && s.Enabled && s.Region != where.region {
		found = append(found, fmt.Sprintf("sigV4Region: is %q, but the URL is in %q; requests are signed for %q", s.Region, where.region, s.Region))
	}
	if where.amp && s.Enabled && s.Service != "aps" {
		found = append(found, fmt.Sprintf("sigv4Service: is %q, but AMP's name is \"aps\"", s.Service))
	}
	if where.plain && !where.loopback {
		found = append(found, "url: http lets others read the answers and any password; use https where the server knows it")
	}
	return found
}

func parseLimits(f fields) Limits {
	return Limits{
		SamplesWarning: f.integer("samplesWarning", 0, 0, maxExact),
		SamplesError:   f.integer("samplesError", 0, 0, maxExact),
		ResponseMB:     int(f.integer("responseMB", 64, 1, maxMB)),
		Series:         int(f.integer("series", 50_000, 1, maxExact)),
		CacheMB:        int(f.integer("cacheMB", 256, 0, maxMB)),
	}
}

func parsePrice(f fields) Price {
	metric, cur := f.object("metric"), f.object("cur")
	p := Price{
		Source:          f.choiceSoFar("source", "flat", []string{"flat"}, "instanceType", "priceList", "metric", "cur"),
		Split:           f.choice("split", "wholeNode", "wholeNode", "acceleratorWeighted", "ratio"),
		GPURatio:        f.number("gpuRatio", 0.7, func(v float64) bool { return v > 0 && v <= 1 }, "a number above 0 and at most 1"),
		DiscountPercent: f.number("discountPercent", 0, func(v float64) bool { return v >= 0 && v < 100 }, "a number from 0 to below 100"),
		AssumeRoleARN:   f.text("assumeRoleArn", ""),
		Metric: MetricPrice{
			Name:      metric.textLike("name", "", metricName.MatchString, "a valid metric name"),
			Per:       metric.choice("per", "gpu", "gpu", "node"),
			NodeLabel: metric.textLike("nodeLabel", "node", labelName.MatchString, "a valid label name"),
		},
		CUR: CUR{
			Database:       cur.text("database", ""),
			Table:          cur.text("table", ""),
			Workgroup:      cur.text("workgroup", "primary"),
			OutputLocation: cur.text("outputLocation", ""),
			Region:         cur.text("region", ""),
		},
		Rates: parseRates(f),
	}
	if f.has("usdPerGpuHour") {
		price := f.dollars("usdPerGpuHour")
		p.USDPerGPUHour = &price
	}
	return p
}

// dollars is a price that must be there: 0 is not one, nor is a blank.
func (f fields) dollars(key string) float64 {
	const want = "a number of US dollars above 0"
	if !f.has(key) {
		f.refuse(key, want)
	}
	return f.number(key, 0, func(v float64) bool { return v > 0 }, want)
}

func parseRates(f fields) []Rate {
	var rates []Rate
	first := map[Rate]string{}
	for _, r := range f.objects("rates") {
		rate := Rate{
			InstanceType: r.text("instanceType", ""),
			CapacityType: parseCapacityType(r),
			Region:       r.text("region", ""),
			From:         parseFrom(r),
		}
		if rate.InstanceType == "" {
			r.refuse("instanceType", `an instance type, such as "p4d.24xlarge"`)
		}
		if earlier, ok := first[rate]; ok {
			f.problems.add("%s: has the same instanceType, capacityType, region and from as %s; remove one of them", r.path, earlier)
		}
		first[rate] = r.path
		rate.USDPerHour = r.dollars("usdPerHour")
		rates = append(rates, rate)
	}
	return rates
}

// parseCapacityType takes the spelling of EKS as well: ON_DEMAND is on-demand.
func parseCapacityType(f fields) string {
	normal := strings.ReplaceAll(strings.ToLower(f.text("capacityType", "")), "_", "-")
	allowed := []string{"on-demand", "spot", "capacity-block", "reserved"}
	if normal != "" && !slices.Contains(allowed, normal) {
		f.refuse("capacityType", oneOf(allowed))
	}
	return normal
}

func parseFrom(f fields) time.Time {
	text := f.text("from", "")
	if text == "" {
		return time.Time{}
	}
	from, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.refuse("from", `a time such as "2025-06-01T00:00:00Z"`)
	}
	return from.UTC()
}

func parseShares(f fields) Shares {
	return Shares{
		SlicesPerGPU: int(f.integer("slicesPerGpu", 1, 1, maxExact)),
		MIGWeight:    f.choice("migWeight", "dominant", "dominant", "compute", "memory"),
	}
}

func parseBusinessUnit(f fields) BusinessUnit {
	b := BusinessUnit{
		Source: f.choiceSoFar("source", "namespace", []string{"namespace", "rules"}, "namespaceLabel", "podLabel"),
		Label:  f.text("label", "business_unit"),
	}
	for _, r := range f.objects("rules") {
		b.Rules = append(b.Rules, parseRule(r))
	}
	if b.Source == "rules" && len(b.Rules) == 0 {
		f.refuse("rules", `a list of at least one rule, as businessUnit.source is "rules"`)
	}
	return b
}

func parseRule(f fields) Rule {
	rule := Rule{BusinessUnit: f.text("businessUnit", ""), Pattern: f.text("namespaces", "")}
	if rule.BusinessUnit == "" {
		f.refuse("businessUnit", "the name of a business unit")
	}
	if slices.Contains(cost.SpecialRows, rule.BusinessUnit) || rule.BusinessUnit == cost.Unknown {
		f.refuse("businessUnit", "another name, as this one is that of a special row")
	}
	if rule.Pattern == "" {
		f.refuse("namespaces", `a regular expression, such as "research-.*"`)
		return rule
	}
	var err error
	if rule.Namespaces, err = anchored(rule.Pattern); err != nil {
		f.refuse("namespaces", "a valid regular expression ("+err.Error()+")")
	}
	return rule
}

// anchored compiles the pattern by itself first: with unbalanced brackets it could escape its anchors.
func anchored(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

func parseUtilization(f fields) Utilization {
	u := Utilization{
		Metric:      f.textLike("metric", "auto", metricName.MatchString, `"auto" or a valid metric name`),
		Unit:        f.choice("unit", "auto", "auto", "ratio", "percent"),
		Attribution: f.choice("attribution", "auto", "auto", "pod", "cluster"),
	}
	if _, known := plan.UnitOf(u.Metric); u.Metric != "auto" && u.Unit == "auto" && !known {
		f.problems.add(`utilization.unit: the name of %s does not tell its unit, want "ratio" or "percent"`, u.Metric)
	}
	return u
}
