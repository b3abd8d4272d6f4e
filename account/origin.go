package account

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// usualPorts has the ports that browsers leave out of origins.
var usualPorts = map[string]string{"http": "80", "https": "443"}

// originHost matches names and IPv4 addresses as browsers write them: small letters, and those of other
// alphabets in Punycode.
var originHost = regexp.MustCompile(`^[a-z0-9._-]+$`)

// CheckOrigin returns an error unless browsers send an origin as it is written. Origins are compared with the
// Origin header byte by byte, so any other entry would refuse every page.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Scheme == "" || u.Hostname() == "":
		return fmt.Errorf("invalid origin %q (want one such as https://app.example.org)", origin)
	case strings.Contains(u.Host, "*"):
		return fmt.Errorf("invalid origin %q: * stands for nothing here (want each origin, such as https://app.example.org)", origin)
	}
	sent, ok := sentOrigin(u)
	switch {
	case !ok:
		return fmt.Errorf("invalid origin %q: browsers send another host or port (want one such as https://app.example.org, other alphabets as xn--…)", origin)
	case sent != origin:
		return fmt.Errorf("invalid origin %q: browsers send no such text (want %s)", origin, sent)
	}
	return nil
}

// sentOrigin returns the origin that browsers send for pages at a URL, or false if it is not known.
func sentOrigin(u *url.URL) (string, bool) {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	switch at, err := netip.ParseAddr(host); {
	case err == nil && at.Is4In6() && at.Zone() == "": // browsers write the IPv4 address as two groups
		b := at.As16()
		host = fmt.Sprintf("[::ffff:%x:%x]", uint(b[12])<<8|uint(b[13]), uint(b[14])<<8|uint(b[15]))
	case err == nil && at.Is6() && at.Zone() == "":
		host = "[" + at.String() + "]"
	case err == nil && at.Is4():
	case !originHost.MatchString(host) || numeric(host): // browsers read 127.1 and 2130706433 as 127.0.0.1
		return "", false
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", false
		}
		port = strconv.FormatUint(n, 10)
	}
	if port != "" && port != usualPorts[u.Scheme] {
		host += ":" + port
	}
	return u.Scheme + "://" + host, true
}

// numeric reports whether browsers read a host as an IPv4 address because its last part is a number.
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}
