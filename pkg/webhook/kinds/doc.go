// Package kinds knows what kinds the API server of the control plane serves, and
// warns users of policies that select what is not there: a kind that is not
// installed, or one of the wrong scope. Such a policy is accepted, as the kind may
// come later, and never refused here.
//
// What is served is asked for when a question needs it, and kept. Whoever asks
// waits a second at most. What could not be found out is not warned about.
package kinds
