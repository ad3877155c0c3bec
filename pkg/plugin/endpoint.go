package plugin

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// endpoint is what the URL of the data source tells.
type endpoint struct {
	url      string // without a trailing slash or API path
	amp      bool
	region   string // of an AMP URL
	plain    bool   // http
	loopback bool
}

var (
	// People paste the URL that the AMP console shows for queries or remote write.
	apiPath = regexp.MustCompile(`/api/v1(/.*)?$`)
	// Public, FIPS, dual-stack and VPC endpoints, in all partitions.
	ampHost = regexp.MustCompile(`^(?:[a-z0-9-]+\.)?aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws)$`)
)

// parseEndpoint forgives what is pasted along with a URL. Its errors never quote the URL, which may hold a password.
func parseEndpoint(raw string) (endpoint, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return endpoint{}, errors.New("url: is empty, want the workspace's URL, as in https://aps-workspaces.<region>.amazonaws.com/workspaces/<id>")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return endpoint{}, errors.New("url: is not a valid URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return endpoint{}, errors.New("url: must begin with https:// or http://")
	case u.Hostname() == "":
		return endpoint{}, errors.New("url: names no host")
	case u.User != nil:
		return endpoint{}, errors.New("url: must not contain a user or password; use basic auth")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return endpoint{}, errors.New("url: must not contain ? or #")
	}
	path := apiPath.ReplaceAllString(strings.TrimRight(u.EscapedPath(), "/"), "")
	host := strings.ToLower(u.Hostname())
	e := endpoint{
		url:      u.Scheme + "://" + u.Host + strings.TrimRight(path, "/"),
		plain:    u.Scheme == "http",
		loopback: isLoopback(host),
	}
	if match := ampHost.FindStringSubmatch(host); match != nil {
		e.amp, e.region = true, match[1]
	}
	return e, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
