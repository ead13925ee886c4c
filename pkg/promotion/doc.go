// Package promotion makes an object that a member cluster has a template of the
// control plane, with a policy that places it where it is, so that from then on
// the control plane manages what runs there already (spec: cli/commands.md 8.1).
// And it undoes that: the object goes on where it is, and the control plane lets
// go of it.
//
// A promotion is done in three steps, of which the first two change nothing: Read
// looks at the member, Check at the control plane, and at what the member would
// make of what it is sent, and Make makes what is missing. A promotion that was
// interrupted goes on when it is repeated.
//
// A demotion is done in the same three steps, all of them in the control plane:
// Read, Check, Demote. Each of the latter's phases leaves the members as they are,
// also when it is the last that is reached:
//
//   - The binding preserves what it has, and sends no more. Until the next phase its
//     policy can take that back.
//   - The template belongs to no policy, which a label says. Now nobody does.
//   - Every Work preserves its object, those of what goes along too.
//   - The binding goes, if it is as it was looked at. Its Works go by that, and take
//     the marks of the control plane off what is in the clusters.
//   - The policy goes, if it was made for this object alone, and then the template.
//     Nothing is bound to it any more.
package promotion
