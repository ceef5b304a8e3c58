const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? '')

/** Renders CommonMark as HTML; supports only paragraphs and code, which are all that the texts use. */
export const commonMarkToHtml = (text: string): string =>
  text
    .split(/\n{2,}/)
    .map((paragraph) => `<p>${escapeHtml(paragraph).replaceAll(/`([^`]+)`/g, '<code>$1</code>')}</p>`)
    .join('\n')

/** An HTML page without scripts and external resources. `style` is trusted CSS. */
export const htmlPage = (parts: { title: string; body: string; style?: string }): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(parts.title)}</title>
<link rel="icon" href="data:,">
${parts.style === undefined ? '' : `<style>${parts.style}</style>\n`}</head>
<body>
${parts.body}
</body>
</html>
`
