/** The style sheet of `/docs`, for both colour schemes and for print. */
export const pageStyle = `
:root{color-scheme:light dark;--ink:light-dark(#1c2330,#dde3ec);--soft:light-dark(#5a6577,#97a3b6);
--paper:light-dark(#fff,#12161d);--panel:light-dark(#f4f6f9,#1a2029);--line:light-dark(#dde2ea,#2c3543);
--accent:light-dark(#0b5cad,#7db8f5)}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1.25rem;background:var(--panel);border-right:1px solid var(--line)}
nav h2{font-size:.75rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:1.4rem 0 .3rem}
nav ul{list-style:none;margin:0;padding:0}
nav a{display:block;padding:.15rem 0;color:inherit;text-decoration:none;font-size:.92rem}
nav a:hover{color:var(--accent)}
main{padding:2.2rem clamp(1.25rem,4vw,3.5rem) 6rem;max-width:64rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem}
main>h2{margin:3.2rem 0 0;font-size:1.3rem}
main>h2+p{margin:.1rem 0 0;color:var(--soft)}
article{border-top:1px solid var(--line);margin-top:1.4rem;padding-top:1.4rem}
article>h3{margin:0;font-size:1.12rem}
.address{margin:.35rem 0 .8rem;font:.95rem ui-monospace,monospace;overflow-wrap:anywhere}
.method{display:inline-block;min-width:3.6rem;margin-right:.4rem;padding:.1rem .45rem;border-radius:.3rem;text-align:center;
font-weight:700;font-size:.78rem;color:#fff;background:#475569}
.get{background:#0b63b5}.post{background:#15803d}.patch,.put{background:#a15c07}.delete{background:#b91c1c}
.needs{color:var(--soft);font-size:.92rem}
h4{margin:1.3rem 0 .4rem;font-size:.82rem;letter-spacing:.04em;text-transform:uppercase;color:var(--soft)}
p{margin:.5rem 0}
code,pre{font:.875em ui-monospace,monospace}
p code,td code,dd code{background:var(--panel);padding:.08em .3em;border-radius:.25rem}
pre{margin:.4rem 0;padding:.8rem 1rem;overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:.45rem;line-height:1.45}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft);font-size:.82rem}
td:first-child{white-space:nowrap}
td p{margin:0}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--accent);font-size:.92rem}
a{color:var(--accent)}
@media(max-width:52rem){body{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}
table,tbody,tr,td{display:block}thead{display:none}td{border:0;padding:.1rem 0}tr{border-bottom:1px solid var(--line);padding:.4rem 0}
td:first-child{white-space:normal}}
@media print{body{display:block}nav{display:none}article{break-inside:avoid}}
`
