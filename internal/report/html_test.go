package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// page writes a report as a page and reads the data of its script.
func page(t *testing.T, r *Report, x *Export) (text string, data pageReport) {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, x, "the last line", false); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), `<script type="application/json" id="data">`)
	raw, _, _ := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(raw), &data); err != nil {
		t.Fatal(err)
	}
	return b.String(), data
}

// TestHTML compares the contents of a page with the report.
func TestHTML(t *testing.T) {
	r := exported()
	r.Findings[0].Message = "</script><script>alert(1)</script>{{js}}"
	r.Findings[1].Suppressed = &Suppressed{By: "file", At: "s.toml:3", Reason: "ticket"}
	x := testExport()
	x.Command = "fencepost run prog.cu"
	text, data := page(t, r, x)
	if n := strings.Count(text, "</script>"); n != 2 {
		t.Errorf("the page ends %d scripts", n)
	}
	if m := regexp.MustCompile(`(src|href)="|url\(|@import|https?://[^w]`).FindString(strings.Split(text, `<script type="application/json"`)[0]); m != "" {
		t.Errorf("the page refers to other files: %s", m)
	}
	if len(data.Findings) != len(r.Findings) || data.Last != "the last line" || data.Command != x.Command || data.Verdict != Found ||
		len(data.Kernels) != 2 || data.Skipped[0].What != "cudaGraphLaunch" || data.Notes[0] != "A remark." {
		t.Errorf("the page has %+v", data)
	}
	if data.Findings[1].Suppressed != "by file s.toml:3: ticket" {
		t.Errorf("suppressed %q", data.Findings[1].Suppressed)
	}
	for _, f := range data.Findings {
		if data.Help[string(f.Kind)] == "" {
			t.Errorf("there is no page on %s", f.Kind)
		}
		for _, s := range f.Sides {
			if s.File == "" {
				continue
			}
			line := data.Sources[s.File][s.Line]
			if line == "" || s.To > len([]rune(line)) || s.From > s.To {
				t.Errorf("%s marks %d to %d of line %d of %s: %q", f.ID, s.From, s.To, s.Line, s.File, line)
			}
		}
	}
}

// TestHTMLOrder checks that the drawing begins with the access that came first, although the text begins with the
// write.
func TestHTMLOrder(t *testing.T) {
	f := race()
	f.Accesses[0].Op, f.Accesses[1].Op = detect.Read, detect.Write
	r := &Report{Findings: []Finding{f}}
	_, data := page(t, r, testExport())
	if p := data.Findings[0]; p.First != 1 || p.Sides[0].Op != "write" {
		t.Errorf("side %d is first, the sides are %s, %s", p.First, p.Sides[0].Op, p.Sides[1].Op)
	}
	r.Findings[0].NoSync = true
	if _, data = page(t, r, testExport()); data.Findings[0].First != -1 {
		t.Error("synchronisation that is not known is drawn")
	}
}

// many returns a report of n findings in sources of 100,000 lines.
func many(n int) (*Report, *Export) {
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprintf("  data[%d] = data[%d + threadIdx.x] * 2; // line %d", i, i+1, i+1)
	}
	kinds := []detect.Kind{detect.MissingBarrier, detect.MissingFence, detect.SameValue, detect.Unordered}
	r := &Report{Verdict: Found}
	for i := range n {
		f := race()
		f.Kind, f.ID = kinds[i%len(kinds)], fmt.Sprintf("FP-%08x", i)
		if f.Kind == detect.SameValue {
			f.Severity = detect.Warning
		}
		f.Accesses = append([]Access{}, f.Accesses...)
		f.Patch = &Patch{Diff: "--- src.cu\n+++ src.cu\n@@ -1,1 +1,2 @@\n x\n+__syncthreads();\n"}
		for j := range f.Accesses {
			f.Accesses[j].Frames = []event.Frame{{File: fmt.Sprintf("src%d.cu", i%100), Line: 1 + (i/100*7+j*3)%1000, Column: 3, Function: fmt.Sprintf("kernel%d", i%977)}}
			f.Accesses[j].Took = &detect.Participants{}
			for k := range uint32(64) {
				l := event.Launch{Grid: f.Accesses[j].Grid, Block: f.Accesses[j].Shape}
				f.Accesses[j].Took.Add(&l, k%8, int(k*(k+3)%32), f.Accesses[j].Address+uint64(4*k))
			}
		}
		r.Findings = append(r.Findings, f)
	}
	x := testExport()
	x.Source = func(string) []string { return lines }
	return r, x
}

// TestHTMLSize bounds a page of 10,000 findings in 100,000 lines.
func TestHTMLSize(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 10,000 findings")
	}
	r, x := many(10000)
	text, _ := page(t, r, x)
	if len(text) > 32<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// probe runs in the page after the page's script, and writes its results into the title.
const probe = `<script>
const report = ["loaded in " + Math.round(performance.now()) + " ms"], want = (what, ok) => report.push((ok ? "ok " : "WRONG ") + what);
const key = (k) => document.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
want("overview", $("detail").textContent.includes("Overview"));
want("all findings", $("shown").textContent === "10000 findings");
want("few rows", document.querySelectorAll(".row").length < 60);
key("j");
want("first finding", current === rows[1].f && location.hash === "#" + current.id);
want("drawings", document.querySelectorAll("#detail svg").length >= 3);
want("both lines", document.querySelectorAll("#detail .m0, #detail .m1").length >= 4);
want("a change", document.querySelectorAll("#detail .diff .add").length === 1);
want("participants", /[2-9] of \d+ took part/.test($("detail").textContent));
want("a pattern", $("detail").textContent.includes("constant stride") && document.querySelectorAll("#detail figure div svg rect").length > 10);
// Every control has a name, every drawing a title, and text stands out from what it is on, in both themes.
const channels = s => (s.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((n, v, i) => n + v * [.2126, .7152, .0722][i], 0);
function ground(e) {
  for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; }
  return [255, 255, 255];
}
function contrast() {
  let least = 99, where = "";
  for (const e of document.querySelectorAll("header *, nav *, article *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || ["title", "option"].includes(e.tagName)) continue;
    const style = getComputedStyle(e), a = light(channels(e.namespaceURI === SVG ? style.fill : style.color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < least) { least = ratio; where = e.tagName + " " + e.textContent.slice(0, 30); }
  }
  return [least, where];
}
for (const theme of ["light", "dark"]) {
  document.documentElement.classList.toggle("dark", theme === "dark");
  const [least, where] = contrast();
  want(theme + " contrast " + least.toFixed(1) + " at " + where, least >= 4.5);
}
want("names of controls", [...document.querySelectorAll("input, select, button")].every(e => e.labels && e.labels.length || e.textContent.trim()));
want("titles of drawings", [...document.querySelectorAll("#detail svg")].every(e => e.querySelector("title") && e.getAttribute("role") === "img"));
want("names of regions", [...document.querySelectorAll("[role=region]")].every(e => e.getAttribute("aria-label")));
want("not wider than the window", document.documentElement.scrollWidth <= innerWidth);
key("j"); key("k");
want("back", current === rows[1].f);
$("search").value = "kernel17 src17.cu"; $("search").dispatchEvent(new Event("input"));
want("search", rows.filter(r => r.f).length > 0 && rows.filter(r => r.f).every(r => r.f.sides.some(s => s.where.includes("kernel17"))));
key("Escape");
want("cleared", $("shown").textContent === "10000 findings");
$("kind").value = "same-value"; $("kind").dispatchEvent(new Event("change"));
want("kind", $("shown").textContent === "2500 of 10000 findings");
key("Escape");
document.querySelectorAll("#severities input")[1].click();
want("severity", $("shown").textContent === "7500 of 10000 findings");
document.querySelectorAll("#severities input")[1].click();
$("list").scrollTop = 5000 * ROW; draw();
document.querySelectorAll(".row[role=option]")[5].click();
want("scrolled and clicked", rows.findIndex(r => r.f === current) > 4900);
document.querySelector(".row.head, .row").click();
const before = $("theme") && document.documentElement.className; $("theme").click();
want("theme", document.documentElement.className !== before);
const start2 = performance.now();
for (let i = 0; i < 20; i++) { $("search").value = "kernel" + i; filter(); }
const each = (performance.now() - start2) / 20;
want("a search takes " + Math.round(each) + " ms", each < 200);
document.title = "PROBE " + report.join("; ") + " END";
</script></body>`

// inBrowser shows a page followed by a script, and checks the result that the script writes into the title. A narrow
// page is shown in a frame, because windows have a minimum width. The script of a frame sends the result.
func inBrowser(t *testing.T, text, script string, width int) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("starts chromium, if it is installed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "</body>", script, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if width < 500 {
		frame := fmt.Sprintf(`<iframe src="page.html" width="%d" height="800" style="border: 0"></iframe><script>onmessage = e => document.title = e.data</script><title></title>`, width)
		file = filepath.Join(dir, "frame.html")
		if err := os.WriteFile(file, []byte(frame), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	out, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-quic", "--user-data-dir="+dir, "--timeout=30000", "--window-size=1200,900", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`PROBE (.*?) END</title>`).FindSubmatch(out)
	if m == nil {
		t.Fatal("the script of the page failed")
	}
	t.Logf("%d bytes, %v with the start of the browser: %s", len(text), time.Since(begin).Round(time.Millisecond), m[1])
	if strings.Contains(string(m[1]), "WRONG") {
		t.Errorf("%s", m[1])
	}
}

// TestHTMLInBrowser uses a page of 10,000 findings in Chromium, if there is one.
func TestHTMLInBrowser(t *testing.T) {
	r, x := many(10000)
	text, _ := page(t, r, x)
	inBrowser(t, text, probe, 1200)
}

// phone checks pages of the width of a phone, and their printed form.
const phone = `<script>
const report = [], want = (what, ok) => report.push((ok ? "ok " : "WRONG ") + what);
for (const f of [null, ...data.findings]) {
  select(f);
  want(f ? f.kind : "overview", document.documentElement.scrollWidth <= innerWidth);
}
want(innerWidth + " pixels", innerWidth === 360);
select(null);
dispatchEvent(new Event("beforeprint"));
want("all are printed", document.querySelectorAll("#detail section").length === data.findings.length);
dispatchEvent(new Event("afterprint"));
want("and gone", !document.querySelector("#detail section"));
select(data.findings[0]);
const drawn = document.querySelector("#detail figure svg title").textContent;
want("an execution graph", drawn.startsWith("Execution graph: 1 P0 (cta 0): R lock=0") && drawn.endsWith("3 P1 (cta 1): R lock=0 rlx gpu reads from 2"));
select(data.findings[1]);
want("what is no graph", [...document.querySelectorAll("#detail pre")].some(p => p.textContent === "no graph"));
select(null);
want("the repair", document.querySelectorAll("#detail .diff .add").length === 1);
parent.postMessage("PROBE " + report.join("; ") + " END", "*");
</script></body>`

// TestHTMLOnPhone looks at findings of every sort in a narrow window.
func TestHTMLOnPhone(t *testing.T) {
	r := exported()
	r.Findings[0].Graph = "      P0 (cta 0)          P1 (cta 1)\n   1  R lock=0 rlx gpu <- initial value\n>  2  W lock=0 rel cta\n>  3                      R lock=0 rlx gpu <- 2\n"
	r.Findings[1].Graph = "no graph"
	r.Verify = &Verify{Verdict: "error", Model: "src11", Repair: &Repair{Changes: []string{"k.cu:1: a change"}, Diff: "--- k.cu\n+++ k.cu\n@@ -1 +1 @@\n-a\n+b\n", Verdict: "ok"}}
	text, _ := page(t, r, testExport())
	inBrowser(t, text, phone, 360)
}
