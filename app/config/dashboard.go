package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ashlar/gateway"
)

// DashboardURL returns the configured URL of the dashboard for links, without a final slash; empty if
// none is configured.
func (c *Config) DashboardURL() string {
	return strings.TrimSuffix(cmp.Or(c.Dashboard.URL, c.Accounts.Mail.Link), "/")
}

// checkURL returns an error if links that begin with the URL would not lead to the dashboard.
func (d *Dashboard) checkURL() error {
	if d.URL == "" {
		return nil
	}
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(d.URL, "?#") || u.Path != "" && u.Path != "/" || !isPort(u.Host, u.Port()) {
		return fmt.Errorf("invalid URL %q (want a scheme and a host, such as https://dash.example.org)", d.URL)
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !slices.Contains(d.Hosts, gateway.AnyHost) && !slices.Contains(d.Hosts, host) {
		return fmt.Errorf("the dashboard is not shown at %s (want a host of dashboard.hosts, there are %q)", host, d.Hosts)
	}
	return nil
}

// isPort reports whether the port of a host is one, or there is none.
func isPort(host, port string) bool {
	if port == "" {
		return !strings.HasSuffix(host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
