import { UnreadableFile } from './pieces.ts'

// XMP (ISO 16684-1): a property of the file is an attribute of an outermost `rdf:Description`, or an element in it. Its namespace counts, not
// the prefix, which a file may choose.

const rdf = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#'
const xmp = 'http://ns.adobe.com/xap/1.0/'
const exif = 'http://ns.adobe.com/exif/1.0/'
const photoshop = 'http://ns.adobe.com/photoshop/1.0/'
const note = 'http://ns.adobe.com/xmp/note/'

/** The customary prefixes, for files that do not declare them. */
const customary: ReadonlyMap<string, string> = new Map([
  ...[['rdf', rdf] as const, ['xmp', xmp] as const, ['xap', xmp] as const],
  ...[['exif', exif] as const, ['photoshop', photoshop] as const, ['xmpNote', note] as const],
])

/** The properties that are read, by their namespaces and names. */
const wanted = {
  'xmp-original': `${exif} DateTimeOriginal`,
  'xmp-photoshop': `${photoshop} DateCreated`,
  'xmp-created': `${xmp} CreateDate`,
  /** The identifier of the rest of the XMP of a JPEG file, which is in other segments. */
  extension: `${note} HasExtendedXMP`,
} as const

export type XmpProperty = keyof typeof wanted

const names: ReadonlyMap<string, XmpProperty> = new Map(
  (Object.entries(wanted) as [XmpProperty, string][]).map(([property, name]) => [name, property]),
)

/** Elements within each other. XMP has about ten. */
const maxDepth = 100

/** Characters of a property. */
const maxValue = 64

export interface XmpProperties {
  /** The first text of each property. */
  readonly values: ReadonlyMap<XmpProperty, string>
  /** Whether the text ends with an error, so that properties after it are not found. */
  readonly isDamaged: boolean
}

/** Reads the properties of a packet of XMP in any encoding of Unicode. */
export function readXmp(bytes: Buffer): XmpProperties {
  const reader = new XmpReader(decode(bytes))
  try {
    reader.readAll()
    return { values: reader.values, isDamaged: false }
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    return { values: reader.values, isDamaged: true }
  }
}

/** Names and dates are ASCII, so other characters of UTF-8 need not be decoded. */
function decode(bytes: Buffer): string {
  const start = bytes.subarray(0, 4).toString('latin1')
  if (start.startsWith('\xfe\xff') || /^\0[^\0]/s.test(start)) {
    const even = Buffer.from(bytes.subarray(0, bytes.byteLength & ~1))
    return even.swap16().toString('utf16le')
  }
  if (start.startsWith('\xff\xfe') || /^[^\0]\0/s.test(start)) return bytes.toString('utf16le')
  return bytes.toString('latin1')
}

interface Element {
  readonly name: string
  /** The namespaces that the element declares, by their prefixes. */
  readonly namespaces: ReadonlyMap<string, string>
  /** The property whose text is in the element. */
  readonly property: XmpProperty | null
  readonly isDescription: boolean
}

const nameShape = /[^\s/>=<"']+/y
const attributeShape = /\s+([^\s/>=<"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')/y
const tagEnd = /\s*(\/?)>/y
const declarationEnds: readonly (readonly [start: string, end: string])[] = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
]

class XmpReader {
  readonly values = new Map<XmpProperty, string>()
  readonly #text: string
  readonly #open: Element[] = []
  #position = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Throws UnreadableFile for a text that is no XML, or not all of it. */
  readAll(): void {
    let hasElement = false
    for (;;) {
      const start = this.#text.indexOf('<', this.#position)
      this.#addText(this.#text.slice(this.#position, start < 0 ? undefined : start))
      if (start < 0) break
      this.#position = start
      if (this.#skipDeclaration()) continue
      hasElement = true
      if (this.#text[start + 1] === '/') this.#readEnd()
      else this.#readStart()
    }
    if (!hasElement || this.#open.length > 0) throw damaged('it ends too early')
  }

  /** Skips a comment, CDATA and an instruction. The text of CDATA is that of its element. */
  #skipDeclaration(): boolean {
    const at = this.#position
    const [start, end] = declarationEnds.find(([each]) => this.#text.startsWith(each, at)) ?? []
    if (start === undefined || end === undefined) {
      // A document type can define other texts.
      if (this.#text.startsWith('<!', at)) throw damaged('it has a document type')
      return false
    }
    const stop = this.#text.indexOf(end, at + start.length)
    if (stop < 0) throw damaged('it ends too early')
    if (start === '<![CDATA[') this.#addText(this.#text.slice(at + start.length, stop))
    this.#position = stop + end.length
    return true
  }

  #addText(text: string): void {
    const property = this.#open.findLast((element) => element.property !== null)?.property
    if (property) this.#add(property, text)
  }

  #add(property: XmpProperty, text: string): void {
    const value = withoutReferences(text.slice(0, maxText)).trim()
    if (value !== '' && !this.values.has(property)) this.values.set(property, value.slice(0, maxValue))
  }

  #readEnd(): void {
    this.#position += 2
    const name = this.#match(nameShape)[0]
    this.#match(tagEnd)
    if (this.#open.pop()?.name !== name) throw damaged('an end has no start')
  }

  #readStart(): void {
    this.#position += 1
    const name = this.#match(nameShape)[0]
    const attributes: [name: string, value: string][] = []
    const namespaces = new Map<string, string>()
    for (;;) {
      attributeShape.lastIndex = this.#position
      const [all, attribute = '', value = '', other = value] = attributeShape.exec(this.#text) ?? []
      if (all === undefined) break
      this.#position = attributeShape.lastIndex
      if (attribute === 'xmlns') namespaces.set('', other)
      else if (attribute.startsWith('xmlns:')) namespaces.set(attribute.slice(6), other)
      else attributes.push([attribute, other])
    }
    const isEmpty = this.#match(tagEnd)[1] === '/'
    if (this.#open.length >= maxDepth) throw damaged('it has too many levels')
    const parent = this.#open.at(-1)
    const isInDescription = this.#open.some(({ isDescription }) => isDescription)
    this.#open.push({ name, namespaces, property: null, isDescription: false })
    const fullName = this.#fullName(name)
    const isDescription = !isInDescription && fullName === `${rdf} Description`
    if (isDescription)
      for (const [attribute, value] of attributes) {
        const property = names.get(this.#fullName(attribute))
        if (property) this.#add(property, value)
      }
    const property = parent?.isDescription ? (names.get(fullName) ?? null) : null
    this.#open.pop()
    if (!isEmpty) this.#open.push({ name, namespaces, property, isDescription })
  }

  /** The name with its namespace. Attributes without a prefix have none. */
  #fullName(name: string): string {
    const [prefix = '', local] = name.includes(':') ? name.split(':', 2) : ['', name]
    const declared = this.#open.findLast(({ namespaces }) => namespaces.has(prefix))?.namespaces.get(prefix)
    return `${declared ?? customary.get(prefix) ?? ''} ${local}`
  }

  #match(shape: RegExp): RegExpExecArray {
    shape.lastIndex = this.#position
    const found = shape.exec(this.#text)
    if (found === null) throw damaged('it is no XML')
    this.#position = shape.lastIndex
    return found
  }
}

/** Characters in which the text of a property is searched. It may begin with spaces. */
const maxText = 1_024

const withoutReferences = (text: string): string =>
  text.replace(/&#(?:x([\da-f]{1,5})|(\d{1,6}));/gi, (all, hex?: string, decimal?: string) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : all
  })

const damaged = (what: string) => new UnreadableFile(`XMP cannot be read: ${what}`)
