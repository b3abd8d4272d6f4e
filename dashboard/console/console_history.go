package console

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"ashlar/dashboard/site"
)

const (
	// maxHistory is the number of requests that a session remembers.
	maxHistory = 10
	// maxRemembered is the maximum size in bytes of a request that is remembered.
	maxRemembered = 2 << 10
)

// sessionHistory is the key of a session's past requests, as JSON, oldest first.
const sessionHistory = "history"

// pastRequest is a request that the session has sent from the console.
type pastRequest struct {
	Network string
	Method  string
	Request string
	Fault   string // of the answer; empty if it had none
	At      int64  // Unix seconds
}

// Time returns when the request was sent.
func (p pastRequest) Time() time.Time { return time.Unix(p.At, 0) }

// history returns the past requests of the session, newest first.
func history(v *site.Visit) []pastRequest {
	var all []pastRequest
	if text := v.Sessions.GetString(v.R.Context(), sessionHistory); text != "" {
		_ = json.Unmarshal([]byte(text), &all) // what cannot be read is forgotten
	}
	slices.Reverse(all)
	return all
}

// past returns a past request by its position in history.
func past(v *site.Visit, position string) (pastRequest, bool) {
	i, err := strconv.Atoi(position)
	all := history(v)
	if err != nil || i < 0 || i >= len(all) {
		return pastRequest{}, false
	}
	return all[i], true
}

// remember adds a request to the session's history, unless it is long or the last one again.
func remember(v *site.Visit, p pastRequest) {
	all := history(v)
	if len(p.Request) > maxRemembered || len(all) > 0 && all[0].Request == p.Request && all[0].Network == p.Network && all[0].Fault == p.Fault {
		return
	}
	slices.Reverse(all)
	all = append(all, p)
	text, _ := json.Marshal(all[max(0, len(all)-maxHistory):]) // strings and numbers can be encoded
	v.Sessions.Put(v.R.Context(), sessionHistory, string(text))
}
