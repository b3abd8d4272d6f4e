package activity

import (
	"cmp"
	"slices"
	"strconv"

	"ashlar/account/usage"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
)

// failing explains the failed calls of a period.
type failing struct {
	Count    uint64
	Pictures []picture
	Causes   []failureLine // of refusals
	Codes    []failureLine // of the other errors
}

// failureLine is a kind of failures with what to do about it.
type failureLine struct {
	Name    string
	Count   uint64
	Meaning string
	Remedy  string
	Path    string // where the remedy is
}

// newFailing explains failures. key is the key that they belong to; empty if there are
// several.
func newFailing(v *site.Visit, t *timeline, used []usage.Line, key string) (f failing) {
	var sum tally
	for _, u := range used {
		sum.Add(u.Counts)
	}
	f.Count = sum.Errors
	if len(sum.Refused) > 0 {
		f.Pictures = append(f.Pictures, t.stacked("causes", "Refused, by cause", true, used, func(u usage.Line) map[string]uint64 {
			counts := make(map[string]uint64, len(u.Refused))
			for cause, n := range u.Refused {
				counts[cause.String()] = n
			}
			return counts
		}))
	}
	if len(sum.Codes) > 0 {
		f.Pictures = append(f.Pictures, t.stacked("codes", "Call errors, by code", true, used, func(u usage.Line) map[string]uint64 {
			counts := make(map[string]uint64, len(u.Codes))
			for code, n := range u.Codes {
				counts[codeName(code)] = n
			}
			return counts
		}))
	}
	for i := range f.Pictures {
		f.Pictures[i].Chart.Narrow = len(f.Pictures) > 1
		f.Pictures[i].SVG = f.Pictures[i].Chart.Bars()
	}
	for cause, n := range sum.Refused {
		line := remedyOf(v, cause, key)
		line.Name, line.Count = cause.String(), n
		f.Causes = append(f.Causes, line)
	}
	for code, n := range sum.Codes {
		line := failureLine{Name: codeName(code), Count: n, Path: "/docs/errors"}
		if e, ok := jsonrpc.Explain(code, "parse error"); ok { // every other code has a general explanation
			line.Meaning, line.Remedy, line.Path = e.Meaning, e.Remedy, "/docs/errors#"+e.Name
		}
		f.Codes = append(f.Codes, line)
	}
	most := func(a, b failureLine) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) }
	slices.SortFunc(f.Causes, most)
	slices.SortFunc(f.Codes, most)
	return f
}

// codeName returns a JSON-RPC error code as text; 0 stands for rare ones.
func codeName(code int) string {
	if code == 0 {
		return "other codes"
	}
	return strconv.Itoa(code)
}

// remedyOf explains a cause of refusals, and where to change it.
func remedyOf(v *site.Visit, cause usage.Cause, key string) failureLine {
	in := func(field string) string {
		if key == "" {
			return v.Path("/keys")
		}
		return v.Path("/keys/"+key) + "#" + field
	}
	line, known := map[usage.Cause]failureLine{
		usage.Rate:     {Meaning: "More credits a second than a limit allows.", Remedy: "Wait as the answer says, send fewer calls at once, or raise the limit.", Path: in("limits")},
		usage.Quota:    {Meaning: "The credits of the day are used up.", Remedy: "Wait until 00:00 UTC, or raise the limit.", Path: in("limits")},
		usage.Origin:   {Meaning: "A web page whose origin the key or the service does not allow.", Remedy: "Add the origin to the key’s web pages.", Path: in(keys.FieldOrigins)},
		usage.Address:  {Meaning: "A client whose address the key does not allow.", Remedy: "Add the address to the key’s client addresses.", Path: in(keys.FieldAddresses)},
		usage.Network:  {Meaning: "A network that the key does not allow.", Remedy: "Add the network to the key.", Path: in(keys.FieldNetworks)},
		usage.Password: {Meaning: "The key’s password was missing or wrong.", Remedy: "Send the password with Basic authentication.", Path: "/docs/errors#password"},
		usage.Method:   {Meaning: "A method that the key does not allow.", Remedy: "Add the method to the key.", Path: in(keys.FieldMethods)},
		usage.Contract: {Meaning: "A contract that the key does not allow.", Remedy: "Add the contract to the key.", Path: in(keys.FieldContracts)},
		usage.Busy:     {Meaning: "The server had too much to do.", Remedy: "Try again after the time that the answer gives.", Path: "/docs/errors#busy"},
		usage.Size:     {Meaning: "A request longer than the server accepts.", Remedy: "Split the batch, or send less data.", Path: "/docs/errors#body"},
		usage.Sockets:  {Meaning: "Too many WebSockets at once.", Remedy: "Close those that you do not need; one can hold many subscriptions.", Path: "/docs/limits"},
	}[cause]
	if !known {
		line.Path = "/docs/errors"
	}
	return line
}

// onlyKey returns the only key with failures, empty if there are several.
func onlyKey(used []usage.Line) (only string) {
	for _, u := range used {
		switch key := u.Key.String(); {
		case u.Errors == 0 || key == only:
		case only != "":
			return ""
		default:
			only = key
		}
	}
	return only
}
