package activity

import (
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
)

// failuresPage is the data of the template failures.
type failuresPage struct {
	Key    account.Key
	Name   string
	Most   int
	Params time.Time // until when parameters are kept; zero if they are not
	Lines  []failedLine
}

// failedLine is a failed request.
type failedLine struct {
	failures.Failure
	Clock   string
	Refused string // cause of the refusal; empty if it was not refused
	Took    string // empty if no call ran
	Path    string // where the error is explained
}

// showFailures shows the last failed requests of a key.
func showFailures(v *site.Visit) error {
	k, err := keys.Named(v)
	if err != nil {
		return err
	}
	log := v.Config.Failures
	p := failuresPage{Key: k, Name: keys.Name(&k), Most: failures.PerKey, Params: log.ParamsUntil(k.ID)}
	for _, f := range log.Last(k.ID) {
		line := failedLine{Failure: f, Clock: f.Time.UTC().Format("2 Jan, 15:04:05"), Path: "/docs/errors"}
		if f.Took > 0 {
			line.Took = site.Duration(f.Took)
		}
		if f.Cause != 0 {
			line.Refused, line.Path = f.Cause.String(), remedyOf(v, f.Cause, k.ID.String()).Path
		} else if e, ok := jsonrpc.Explain(f.Code, f.Message); ok {
			line.Path = "/docs/errors#" + e.Name
		}
		p.Lines = append(p.Lines, line)
	}
	return v.Show(200, "failures", "Failed requests", p)
}

// keepParams handles the form of failures.
func keepParams(v *site.Visit) error {
	k, err := keys.Named(v)
	if err != nil {
		return err
	}
	switch v.R.PostForm.Get("params") {
	case "keep":
		v.Config.Failures.KeepParams(k.ID, true)
		v.Say("Parameters of failed requests are kept for an hour.")
	case "forget":
		v.Config.Failures.KeepParams(k.ID, false)
		v.Say("Parameters are no longer kept, and those that were are deleted.")
	default:
		return site.ErrForm
	}
	return v.Redirect(v.Path("/keys/" + k.ID.String() + "/failures"))
}
