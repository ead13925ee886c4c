package explanation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/diagnosis"
)

// Print writes an explanation for people, as of a time.
func Print(w io.Writer, x *Explanation, s Style, now time.Time) error {
	p := &printer{x: x, style: s, now: now}
	p.out.WriteString(s.wrap("", s.Bold(strings.TrimSuffix(x.Summary, ".")+".")))
	p.section("POLICY", p.policies)
	p.section("BINDING", p.binding)
	p.section("CLUSTERS", p.clusters)
	p.section("WRONG OR PENDING", p.findings)
	p.section("WARNINGS", p.warnings)
	p.section("NOT READ", p.unread)
	_, err := io.WriteString(w, p.out.String())
	return err
}

type printer struct {
	x     *Explanation
	style Style
	now   time.Time
	out   strings.Builder
}

// section writes what body writes below a title, if that is anything.
func (p *printer) section(title string, body func()) {
	before := p.out.String()
	p.out.WriteString("\n" + p.style.Bold(title) + "\n")
	begin := p.out.Len()
	body()
	if p.out.Len() == begin {
		p.out.Reset()
		p.out.WriteString(before)
	}
}

// line writes a paragraph that is indented.
func (p *printer) line(format string, args ...any) { p.item("  ", format, args...) }

func (p *printer) item(first, format string, args ...any) {
	p.out.WriteString(p.style.wrap(first, fmt.Sprintf(format, args...)))
}

func (p *printer) ago(t *time.Time) string { return duration.HumanDuration(p.now.Sub(*t)) }

func (p *printer) policies() {
	for _, one := range p.x.Policies {
		p.policy(one)
	}
	for _, one := range p.x.NearMisses {
		p.policy(one)
	}
}

func (p *printer) policy(one Policy) {
	does := map[Verdict]string{Claimed: "has claimed it", Wins: "selects it and comes first", Loses: "loses", Misses: "does not select it"}[one.Verdict]
	details := []string{fmt.Sprintf("priority %d", one.Priority)}
	if one.Selects != "" {
		details = append(details, "selects by "+one.Selects)
	}
	if one.Deleted != nil {
		details = append(details, "being deleted for "+p.ago(one.Deleted))
	}
	reason := ""
	if one.Reason != "" {
		reason = ": " + one.Reason
	}
	p.line("%s %s %s (%s)%s", one.Kind, pathOf(one.Namespace, one.Name), does, strings.Join(details, ", "), reason)
}

func (p *printer) binding() {
	b := p.x.Binding
	if b == nil {
		return
	}
	text := fmt.Sprintf("%s %s", b.Kind, pathOf(b.Namespace, b.Name))
	if b.Replicas != nil {
		text += ", " + replicas(*b.Replicas)
	}
	if b.LastScheduled != nil {
		text += fmt.Sprintf(", scheduled %s ago", p.ago(b.LastScheduled))
	}
	if b.AffinityTerm != "" {
		text += ", affinity term " + b.AffinityTerm
	}
	if len(b.RequiredBy) > 0 {
		text += ", required by " + strings.Join(b.RequiredBy, ", ")
	}
	p.line("%s", text)
	for _, c := range b.Conditions {
		p.condition(c)
	}
	if s := p.x.Scheduling; s != nil && s.Cause != "" && p.wouldMove() {
		p.line("Asked now, the scheduler would choose %s (%s).", cmp.Or(targets(s.Targets), "no cluster"), s.Cause)
	}
}

func (p *printer) condition(c Condition) {
	text := fmt.Sprintf("%s: %s", c.Type, c.Status)
	if c.Reason != "" && c.Status != "True" {
		text += ", " + c.Reason
	}
	if c.Since != nil {
		text += fmt.Sprintf(", for %s", p.ago(c.Since))
	}
	if c.Message != "" && c.Status != "True" {
		text += ": " + c.Message
	}
	p.line("%s", text)
}

// wouldMove reports whether the decision that was tried differs from what is.
func (p *printer) wouldMove() bool {
	if p.x.Scheduling.Condition.Status != "True" || len(p.x.Clusters) == 1 && len(p.x.Scheduling.Targets) > 1 {
		return false // no decision, or not all clusters are here to compare
	}
	want := map[string]int32{}
	for _, t := range p.x.Scheduling.Targets {
		want[t.Cluster] = t.Replicas
	}
	for _, c := range p.x.Clusters {
		n, would := want[c.Name]
		if would != c.Chosen || would && c.Replicas != nil && *c.Replicas != n {
			return true
		}
	}
	return false
}

func targets(all []Target) string {
	parts := make([]string, 0, len(all))
	for _, t := range all {
		if t.Replicas > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", t.Cluster, t.Replicas))
		} else {
			parts = append(parts, t.Cluster)
		}
	}
	return strings.Join(parts, ", ")
}

func replicas(n int32) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// clusters writes a table of those that are chosen, and why others are not.
func (p *printer) clusters() {
	var rows [][]string
	for _, c := range p.x.Clusters {
		if c.Chosen {
			rows = append(rows, p.row(c))
		}
	}
	if len(rows) > 0 {
		p.table([]string{"CLUSTER", "REPLICAS", "SCORE", "ROOM", "OVERRIDES", "WORK", "APPLIED", "HEALTH"}, rows, []int{5, 3, 2, 4})
	}
	for _, c := range p.x.Clusters {
		switch {
		case c.Chosen && c.RefusedBy != "":
			p.line("%s was chosen before and keeps it; now it would be %s", c.Name, c.Verdict)
		case c.Chosen && len(p.x.Clusters) == 1 && c.Verdict != "":
			p.line("%s: %s", c.Name, c.Verdict)
		}
	}
	p.notChosen()
}

func (p *printer) row(c Cluster) []string {
	row := []string{c.Name, "", "", "", "", "", "", ""}
	if c.Replicas != nil {
		row[1] = strconv.Itoa(int(*c.Replicas))
	}
	if c.Score != nil {
		row[2] = strconv.FormatInt(*c.Score, 10)
	}
	if room, known := leastRoom(c.Estimates); known {
		row[3] = strconv.Itoa(int(room))
	}
	var overrides []string
	for _, o := range c.Overrides {
		if !slices.Contains(overrides, o.Name) {
			overrides = append(overrides, o.Name)
		}
	}
	row[4] = strings.Join(overrides, ",")
	if c.OverrideError != "" {
		row[4] = "failed"
	}
	if c.Work != nil {
		row[5], row[6], row[7] = c.Work.Name, "Unknown", c.Work.Health
		if c.Work.Applied != nil {
			row[6] = c.Work.Applied.Status
		}
		if c.Work.Suspended {
			row[6] += " (suspended)"
		}
	}
	for i := range row {
		row[i] = cmp.Or(row[i], "-")
	}
	return row
}

func leastRoom(all []Estimate) (least int32, known bool) {
	for _, e := range all {
		if e.Replicas != nil && (!known || *e.Replicas < least) {
			least, known = *e.Replicas, true
		}
	}
	return least, known
}

// table writes rows. Columns that have nothing in them are left out, and so are those
// that may be, in that order, while it does not fit.
func (p *printer) table(head []string, rows [][]string, optional []int) {
	const gap, indent = 3, 2
	widths := make([]int, len(head))
	for i := range head {
		empty := true
		widths[i] = utf8.RuneCountInString(head[i])
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			empty = empty && row[i] == "-"
		}
		if empty && slices.Contains(append([]int{1}, optional...), i) {
			widths[i] = 0
		}
	}
	total := func() int {
		sum := indent
		for _, w := range widths {
			if w > 0 {
				sum += w + gap
			}
		}
		return sum - gap
	}
	for _, i := range optional {
		if p.style.Width == 0 || total() <= p.style.Width {
			break
		}
		widths[i] = 0
	}
	for n, row := range slices.Concat([][]string{head}, rows) {
		var line strings.Builder
		line.WriteString(strings.Repeat(" ", indent))
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap)
			if n > 0 {
				cell = p.mark(cell)
			}
			line.WriteString(cell + padding)
		}
		p.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// mark colours the words of conditions.
func (p *printer) mark(cell string) string {
	switch cell {
	case "True", "Healthy":
		return p.style.Good(cell)
	case "False", "Unhealthy", "failed":
		return p.style.Bad(cell)
	case "Unknown":
		return p.style.Open(cell)
	default:
		return cell
	}
}

// namedClusters is how many clusters a line names that say the same.
const namedClusters = 8

// notChosen writes why clusters are not chosen, a line for each reason.
func (p *printer) notChosen() {
	var reasons []string
	by := map[string][]string{}
	for _, c := range p.x.Clusters {
		if c.Chosen {
			continue
		}
		reason := cmp.Or(c.Verdict, "nothing says that it should be there")
		if c.Stage == string(diagnosis.Assigned) {
			reason = "not chosen yet, and would be now: " + reason
		}
		if c.Leaving != "" {
			reason = "being left: " + c.Leaving
		}
		if by[reason] == nil {
			reasons = append(reasons, reason)
		}
		by[reason] = append(by[reason], c.Name)
	}
	for _, reason := range reasons {
		names := by[reason]
		text := strings.Join(names[:min(len(names), namedClusters)], ", ")
		if more := len(names) - namedClusters; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		p.line("%s: %s", text, reason)
	}
}

func (p *printer) findings() {
	for i, f := range p.x.Findings {
		number := fmt.Sprintf("  %d. ", i+1)
		text := f.Message
		if f.Cluster != "" {
			text = f.Cluster + ": " + text
		}
		if f.Since != nil {
			text += fmt.Sprintf(" (for %s)", p.ago(f.Since))
		}
		p.out.WriteString(p.style.wrap(number, p.style.Open(string(f.Code))+": "+text))
		if f.Next != "" {
			// A command is copied: it stays on one line.
			p.out.WriteString(strings.Repeat(" ", len(number)) + "next: " + f.Next + "\n")
		}
	}
}

func (p *printer) warnings() {
	for _, w := range p.x.Warnings {
		when := ""
		if w.Last != nil {
			when = p.ago(w.Last) + " ago, "
		}
		times := ""
		if w.Count > 1 {
			times = fmt.Sprintf(" (%d times)", w.Count)
		}
		p.line("%s%s: %s: %s%s", when, w.About, w.Reason, w.Message, times)
	}
}

func (p *printer) unread() {
	for _, gap := range p.x.Unread {
		p.line("%s", gap)
	}
}
