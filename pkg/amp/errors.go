package amp

import (
	"net/http"
	"time"
)

// Kind says what went wrong, as finely as the cures differ.
type Kind string

// The kinds of fault, by who has to do something about them.
const (
	// The query, or what it came to.
	BadData          Kind = "bad data"           // the PromQL is wrong: a bug of its writer
	TooManySamples   Kind = "too many samples"   // over AMP's limit, or over SamplesError
	Refused          Kind = "query refused"      // another limit, or an execution error
	ResponseTooLarge Kind = "response too large" // over AMP's limit, or over MaxResponseBytes
	TooManySeries    Kind = "too many series"    // over MaxSeries
	Timeout          Kind = "timeout"            // the server's, or the deadline
	Canceled         Kind = "canceled"           // by the caller

	// The server, or the way to it.
	Throttled         Kind = "throttled"
	Unavailable       Kind = "unavailable"
	Unreachable       Kind = "unreachable" // name, connection or TLS
	Redirected        Kind = "redirected"
	NotFound          Kind = "not found"
	MethodNotAllowed  Kind = "method not allowed"
	UnexpectedContent Kind = "unexpected content"
	Decode            Kind = "decode" // cut short, corrupt, or of another shape

	// Credentials that can't be had.
	CredentialsNotAllowed Kind = "credentials not allowed"
	AssumeRoleNotAllowed  Kind = "assume role not allowed"
	AssumeRoleFailed      Kind = "assume role failed"
	NoRole                Kind = "no role"
	NoProfile             Kind = "no profile"
	CABundle              Kind = "CA bundle"
	MissingCredentials    Kind = "missing credentials"

	// Credentials, or a signature, that the server doesn't take.
	AccessDenied Kind = "access denied"
	WrongRegion  Kind = "wrong region"
	WrongService Kind = "wrong service"
	ClockSkew    Kind = "clock skew"
	InvalidKey   Kind = "invalid key"
	ExpiredToken Kind = "expired token"
	BadSignature Kind = "bad signature"
)

// sentences say what is wrong and what to do about it.
var sentences = map[Kind]string{
	BadData:          "AMP does not understand the query that the plugin wrote: please report it",
	TooManySamples:   "The query reads more samples than allowed: choose a shorter range, a larger step or fewer business units, or raise limits.samplesError if it is set",
	Refused:          "AMP refuses the query: choose a shorter range or a larger step",
	ResponseTooLarge: "The answer is too large: choose a shorter range, a larger step or fewer groups",
	TooManySeries:    "The answer has too many series: choose fewer groups or a narrower filter",
	Timeout:          "The query took too long: choose a shorter range or a larger step, or raise queryTimeout",
	Canceled:         "The query was canceled",

	Throttled:         "AMP is throttling requests: try again in a while, refresh less often, or raise the workspace's query quota",
	Unavailable:       "AMP is unavailable: try again in a while",
	Unreachable:       "The server can't be reached: check the URL, and that Grafana's network leads to it",
	Redirected:        "The server redirects to another address, which is not followed: set the URL to where the API is",
	NotFound:          "There is no Prometheus API at the URL: check the region and the workspace id in it",
	MethodNotAllowed:  "The server does not take this HTTP method: set httpMethod to the other of GET and POST",
	UnexpectedContent: "The answer is not JSON: check that the URL is that of a Prometheus API and not of a login page or proxy",
	Decode:            "The answer is damaged or not that of a Prometheus API, so nothing of it is shown: try again, and check the URL",

	CredentialsNotAllowed: "Grafana does not allow the plugin this sigV4AuthType: add the type to GF_AWS_ALLOWED_AUTH_PROVIDERS, such as default,keys,credentials,ec2_iam_role, " +
		"and the plugin to GF_AWS_FORWARD_SETTINGS_TO_PLUGINS, its default list plus gpucost-amp-datasource; or use \"default\" or \"keys\"",
	AssumeRoleNotAllowed: "Grafana is set not to assume roles: set GF_AWS_ASSUME_ROLE_ENABLED=true, or leave sigV4AssumeRoleArn empty",
	AssumeRoleFailed:     "The role can't be assumed: check sigV4AssumeRoleArn and sigV4ExternalId, and that the role's trust policy names the identity that Grafana runs as",
	NoRole: "No AWS role is found: since Grafana 12.4 a plugin sees no variable of its host unless GF_PLUGINS_FORWARD_HOST_ENV_VARS=gpucost-amp-datasource is set, " +
		"which IRSA, ECS and EKS Pod Identity need; or use sigV4AuthType \"keys\"",
	NoProfile: "The AWS profile is not found: check sigV4Profile and the credentials file of the user that Grafana runs as",
	CABundle:  "The AWS SDK can't use the certificates of AWS_CA_BUNDLE here: keep that variable out of the plugin's environment, and add the certificates to the system's or set a CA certificate in the data source",
	MissingCredentials: "The request carries no AWS credentials: set sigV4Auth to true and choose a sigV4AuthType; " +
		"if Grafana's own role is to be used, set GF_PLUGINS_FORWARD_HOST_ENV_VARS=gpucost-amp-datasource",

	AccessDenied: "Access is denied: the identity needs aps:QueryMetrics, aps:GetLabels, aps:GetSeries and aps:GetMetricMetadata on the workspace; without SigV4, check basic auth and headers",
	WrongRegion:  "The request is signed for another region: set sigV4Region to the region in the URL",
	WrongService: "The request is signed for another service: set sigv4Service to aps",
	ClockSkew:    "The signature's time is off by minutes: set the clock of the machine that Grafana runs on",
	InvalidKey:   "AWS does not know the access key or session token: check sigV4AccessKey, and sigV4SessionToken for temporary keys",
	ExpiredToken: "The AWS session token has expired: set new keys, or use a role, which renews itself",
	BadSignature: "The signature does not match: check sigV4SecretKey, and that no proxy changes the request",
}

// Error is the one type of error that a Client gives. Its text is a fixed
// sentence per Kind and, where that is safe, a detail. It holds no credential,
// and nothing of an answer that refused one.
type Error struct {
	Status  int // HTTP status of the answer; 0 = there was none
	Kind    Kind
	Message string
	Err     error // context.Canceled, context.DeadlineExceeded or nil

	retryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the context's error, if that is what ended the request.
func (e *Error) Unwrap() error { return e.Err }

// BadQuery reports whether the query's writer is to blame, rather than the
// settings, the user or the server.
func (e *Error) BadQuery() bool { return e.Kind == BadData }

// retries is how often a request is repeated after this fault.
func (e *Error) retries() int {
	switch e.Kind {
	case Decode:
		return 1
	case Throttled, Unavailable:
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return 2
		}
	}
	return 0
}

// fault makes an Error; detail must be safe to show.
func (c *Client) fault(kind Kind, status int, detail string) *Error {
	message := sentences[kind]
	if detail != "" {
		message += " (" + detail + ")"
	}
	return &Error{Status: status, Kind: kind, Message: message}
}

// OfCredentials reports whether the request was never sent, for want of
// credentials to sign it with.
func (k Kind) OfCredentials() bool {
	switch k {
	case CredentialsNotAllowed, AssumeRoleNotAllowed, AssumeRoleFailed, NoRole, NoProfile, CABundle:
		return true
	default:
		return false
	}
}
