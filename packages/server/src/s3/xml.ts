import { S3Error } from './s3-errors.ts'

/** An element without attributes: its name, and its text or its children. */
export interface XmlElement {
  readonly name: string
  readonly text: string
  readonly children: readonly XmlElement[]
}

/** Elements that are written already. */
export class XmlText {
  readonly xml: string

  constructor(xml: string) {
    this.xml = xml
  }
}

/** A part of a document that is written: a text, or elements by their names. A list repeats its element; undefined leaves it out. */
export type XmlContent =
  | string
  | number
  | boolean
  | XmlText
  | { readonly [name: string]: XmlContent | readonly XmlContent[] | undefined }

/** A name may have an attribute, such as `Grantee xsi:type="…"`, which its end tag has not. */
const endOf = (name: string): string => (name.includes(' ') ? (name.split(' ', 1)[0] ?? name) : name)

/** Characters that are not text in XML 1.0 are written as references all the same, as S3 does: keys can have them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is escaped
const special = /[&<>"\r\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeXml = (text: string): string =>
  text.replace(special, (character) => escapes[character] ?? `&#${character.charCodeAt(0)};`)

/** The elements of these names and contents, as text. */
export function xmlOf(content: XmlContent): string {
  if (typeof content === 'string') return escapeXml(content)
  if (typeof content !== 'object') return String(content)
  if (content instanceof XmlText) return content.xml
  let text = ''
  for (const [name, value] of Object.entries(content)) {
    if (value === undefined) continue
    for (const one of isList(value) ? value : [value]) text += `<${name}>${xmlOf(one)}</${endOf(name)}>`
  }
  return text
}

const isList = (value: XmlContent | readonly XmlContent[]): value is readonly XmlContent[] =>
  Array.isArray(value)

export const xmlHead = '<?xml version="1.0" encoding="UTF-8"?>\n'

/** A whole document of the S3 protocol. */
export const xmlDocument = (root: string, content: XmlContent): string =>
  `${xmlHead}<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${xmlOf(content)}</${root}>`

/** Bounds of documents, so that reading one takes little time. 10,000 parts have seven elements each. */
const maxDepth = 8
const maxElements = 100_000

/** Characters of a tag with its attributes, and of a text; a key of 1,024 bytes has up to ten characters for each. */
const maxTag = 2_048
const maxText = 10_240

const malformed = () => new S3Error('MalformedXML')

const decoder = new TextDecoder('utf-8', { fatal: true })

/** A tag with its attributes, or an end tag. */
const tag =
  /^<(\/?)([A-Za-z_][\w.:-]*)(?:[ \t\r\n]+[\w.:-]+[ \t\r\n]*=[ \t\r\n]*(?:"[^"<]*"|'[^'<]*'))*[ \t\r\n]*(\/?)>/

const declaration = /^\uFEFF?(?:<\?xml[ \t\r\n][^?<>]{0,200}\?>)?/

interface OpenElement {
  readonly name: string
  text: string
  readonly children: XmlElement[]
}

/**
 * Reads a small document: elements and text. Attributes and namespaces are ignored. Entities other than the five of XML, document types, processing
 * instructions and CDATA sections are refused. Throws S3Error `MalformedXML`.
 */
export function parseXml(bytes: Uint8Array): XmlElement {
  const source = decode(bytes)
  const top: OpenElement = { name: '', text: '', children: [] }
  const open: OpenElement[] = [top]
  let elements = 0
  let at = declaration.exec(source)?.[0].length ?? 0
  while (at < source.length) {
    const current = open.at(-1) ?? top
    if (source[at] !== '<') {
      const end = source.indexOf('<', at)
      addText(current, source.slice(at, end === -1 ? source.length : end), open.length === 1)
      at = end === -1 ? source.length : end
    } else if (source.startsWith('<!--', at)) at = endOfComment(source, at)
    else {
      const found = tag.exec(source.slice(at, at + maxTag))
      if (found === null) throw malformed()
      const [whole, end, name = '', isEmpty] = found
      at += whole.length
      if (end === '/') {
        if (open.length === 1 || current.name !== name || isEmpty === '/') throw malformed()
        open.pop()
        continue
      }
      elements += 1
      if (open.length > maxDepth || elements > maxElements) throw malformed()
      const element: OpenElement = { name, text: '', children: [] }
      current.children.push(element)
      if (isEmpty !== '/') open.push(element)
    }
  }
  const [root, ...others] = top.children
  if (open.length !== 1 || root === undefined || others.length > 0) throw malformed()
  return root
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw malformed()
  }
}

/** White space between elements is no text. */
function addText(element: OpenElement, text: string, isOutside: boolean): void {
  const isBlank = text.trim() === ''
  if (isBlank && (isOutside || element.children.length > 0)) return
  if (isOutside || element.text.length + text.length > maxText) throw malformed()
  element.text += unescapeXml(text)
}

function endOfComment(source: string, at: number): number {
  const end = source.indexOf('--', at + '<!--'.length)
  if (end === -1 || source[end + 2] !== '>') throw malformed()
  return end + '-->'.length
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const reference = /&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w{1,4}));|&/g

const unescapeXml = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(reference, (_, decimal, hexadecimal, name) => {
    if (name !== undefined) return entities[name] ?? refuse()
    const code = decimal === undefined ? Number.parseInt(hexadecimal, 16) : Number(decimal)
    if (!(code > 0 && code <= 0x10_ffff) || (code >= 0xd800 && code < 0xe000)) throw malformed()
    return String.fromCodePoint(code)
  })

function refuse(): never {
  throw malformed()
}

/** The children of this name. */
export const childrenOf = (element: XmlElement, name: string): readonly XmlElement[] =>
  element.children.filter((child) => child.name === name)

/** The text of the child of this name; undefined if there is none. Throws S3Error `MalformedXML` for several, of which one would be ignored. */
export function childText(element: XmlElement, name: string): string | undefined {
  const [child, ...others] = childrenOf(element, name)
  if (others.length > 0) throw malformed()
  return child?.text
}
