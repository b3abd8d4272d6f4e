package app

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"ashlar/app/config"
	"ashlar/gateway"
)

// DashboardURL returns the URL of the dashboard for links, without a final slash; empty if
// it is shown at no host. port is that of the listener if the configuration leaves it open.
func DashboardURL(c *config.Config, port string) string {
	if len(c.Dashboard.Hosts) == 0 {
		return ""
	}
	if configured := c.DashboardURL(); configured != "" {
		return configured
	}
	scheme, usual := "http", "80"
	if c.TLS.Certificate != "" || len(c.TLS.ACME.Domains) > 0 {
		scheme, usual = "https", "443"
	}
	listened, configured, _ := net.SplitHostPort(c.Listen)
	port = cmp.Or(port, configured)
	host := strings.Trim(c.Dashboard.Hosts[0], "[]")
	if host == gateway.AnyHost {
		host = listened
		if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
			host = "localhost"
		}
	}
	if port != usual {
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

// dashboardURL returns the URL of this server's dashboard.
func (s *Service) dashboardURL() string {
	_, port, _ := net.SplitHostPort(s.Addr().String())
	return DashboardURL(s.current.Load(), port)
}

// offerFirst logs a link that creates the first operator, if there is none. Of several
// servers in a cluster only the writer does.
func (s *Service) offerFirst() {
	base := s.dashboardURL()
	if base == "" || s.config.Role == config.Reader {
		return
	}
	if token, until, ok := s.accounts.AllowFirst(); ok {
		slog.Warn("no operator exists: open this link to create one; it can be used once", "link", base+"/setup?token="+url.QueryEscape(token), "until", until.Format(time.RFC3339))
	}
}
