// Package dashboard serves the web pages of the service. Users sign up, manage their keys,
// see their usage and try methods; operators also manage accounts and invitations.
//
// Rules for all pages:
//   - Pages are rendered on the server and work without scripts. The one script only saves
//     clicks. Pages load nothing from other sites; a Content-Security-Policy enforces this.
//   - Every change is a POST from a page of the dashboard ([http.CrossOriginProtection] and
//     SameSite cookies). The answer is a redirect to a path of the dashboard, so that
//     reloading a page repeats nothing. The exception is a page that shows a secret: only
//     the answer to the POST contains it.
//   - Users see only their own keys and usage. What belongs to another account is answered
//     as if it did not exist.
//   - A rejected form comes back with the typed values, except passwords, and with each
//     problem beside its field.
//   - A page shows the current state. Pages with private data are not cached.
//
// Package site has what all pages share; the other packages have the pages, by their subject.
// Each page has its own file, and a template in site/templates. Package chart draws the charts.
// Package account manages accounts and keys; [site.Config] supplies the networks and the
// [site.Caller] for the console's requests.
package dashboard
