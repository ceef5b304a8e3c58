export interface SniffedType {
  readonly mime: string
  /** Without the dot. */
  readonly ext: string
}

/** How XML, PostScript and Rich Text begin. */
export const xmlDeclaration: RegExp = /^<\?xml\s+(?:version|encoding)\s*=/
export const postScript: RegExp = /^%!(?:PS-Adobe(?:Font)?-\d|FontType1-\d|PS[ \t]*[\r\n])/
export const richText: RegExp = /^\{\\rtf(?:\d|\\)/

/** The formats that are text and have a signature. Each requires more than the letters of the signature, with which a text can begin. */
const formats: readonly { readonly start: RegExp; readonly type: SniffedType }[] = [
  { start: xmlDeclaration, type: { mime: 'application/xml', ext: 'xml' } },
  { start: /^%PDF-\d\.\d[ \t]*(?:[\r\n%]|$)/, type: { mime: 'application/pdf', ext: 'pdf' } },
  { start: /^%!PS-Adobe-\d\.\d +EPSF-\d/, type: { mime: 'application/eps', ext: 'eps' } },
  { start: postScript, type: { mime: 'application/postscript', ext: 'ps' } },
  { start: richText, type: { mime: 'application/rtf', ext: 'rtf' } },
  { start: /^BEGIN:VCARD[ \t]*[\r\n]/, type: { mime: 'text/vcard', ext: 'vcf' } },
  { start: /^BEGIN:VCALENDAR[ \t]*[\r\n]/, type: { mime: 'text/calendar', ext: 'ics' } },
  {
    start: /^WEBVTT(?:[ \t]*(?:[\r\n]|$)|[ \t][\s\S]*-->)/,
    type: { mime: 'text/vtt', ext: 'vtt' },
  },
  {
    start: /^solid [^\r\n]*[\r\n]\s*(?:facet\s+normal|endsolid)\b/,
    type: { mime: 'model/stl', ext: 'stl' },
  },
  {
    start: /^-----BEGIN PGP MESSAGE-----[ \t]*[\r\n]/,
    type: { mime: 'application/pgp-encrypted', ext: 'pgp' },
  },
  {
    start: /^(?:REGEDIT4|Windows Registry Editor Version 5\.00)\r\n\s*(?:\[|;|$)/,
    type: { mime: 'application/x-ms-regedit', ext: 'reg' },
  },
  // An archive of texts. A header has 60 bytes.
  { start: /^!<arch>\n(?:$|[^\n]{58}`\n)/, type: { mime: 'application/x-unix-archive', ext: 'ar' } },
]

/** The type of a text that has the signature of its format (`decodeText`); null for all other texts. */
export const textTypeOf = (text: string): SniffedType | null =>
  formats.find(({ start }) => start.test(text))?.type ?? null
