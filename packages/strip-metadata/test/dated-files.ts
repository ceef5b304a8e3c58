import { crc32, deflateSync } from 'node:zlib'
import { box, bytesOf } from './boxes.ts'

// Files with nothing but what states when they were taken, and what their formats require around it.

type Choose = (limit: number) => number

/** The texts of an Exif block by their tags. */
export interface ExifForm {
  readonly isLittle: boolean
  /** Those of the Exif directory, and of the first one. */
  readonly exif: Readonly<Record<number, string>>
  readonly first: Readonly<Record<number, string>>
  readonly xmp: Buffer | null
}

/** A TIFF structure. */
export function exifBlock({ isLittle, exif, first, xmp }: ExifForm): Buffer {
  const number = (value: number, size: 2 | 4) => {
    const bytes = bytesOf([value, size])
    return isLittle ? bytes.reverse() : bytes
  }
  const hasExif = Object.keys(exif).length > 0
  const values: Buffer[] = []
  const count = (texts: Readonly<Record<number, string>>) => Object.keys(texts).length
  const sizes = {
    first: 2 + (count(first) + (hasExif ? 1 : 0) + (xmp ? 1 : 0)) * 12 + 4,
    exif: hasExif ? 2 + count(exif) * 12 + 4 : 0,
  }
  let end = 8 + sizes.first + sizes.exif
  const entry = (tag: number, type: number, value: Buffer) => {
    const head = [number(tag, 2), number(type, 2), number(value.length, 4)]
    if (value.length <= 4) return Buffer.concat([...head, value, Buffer.alloc(4 - value.length)])
    values.push(value, Buffer.alloc(value.length % 2))
    const at = end
    end += value.length + (value.length % 2)
    return Buffer.concat([...head, number(at, 4)])
  }
  const texts = (all: Readonly<Record<number, string>>): [number, Buffer][] =>
    Object.entries(all).map(([tag, text]) => [Number(tag), entry(Number(tag), 2, Buffer.from(`${text}\0`))])
  const directory = (rows: [number, Buffer][]) =>
    Buffer.concat([
      number(rows.length, 2),
      ...rows.toSorted(([one], [other]) => one - other).map(([, row]) => row),
      number(0, 4),
    ])
  const pointer = Buffer.concat([number(0x8769, 2), number(4, 2), number(1, 4), number(8 + sizes.first, 4)])
  const rows: [number, Buffer][] = [
    ...texts(first),
    ...(hasExif ? [[0x8769, pointer] as [number, Buffer]] : []),
    ...(xmp ? [[700, entry(700, 1, xmp)] as [number, Buffer]] : []),
  ]
  const start = directory(rows)
  const inner = hasExif ? directory(texts(exif)) : Buffer.alloc(0)
  return Buffer.concat([
    Buffer.from(isLittle ? 'II*\0' : 'MM\0*', 'latin1'),
    ...[number(8, 4), start, inner, ...values],
  ])
}

const namespaces = {
  exif: 'http://ns.adobe.com/exif/1.0/',
  photoshop: 'http://ns.adobe.com/photoshop/1.0/',
  xmp: 'http://ns.adobe.com/xap/1.0/',
} as const

export type XmpName = 'exif:DateTimeOriginal' | 'photoshop:DateCreated' | 'xmp:CreateDate'

/** A packet of XMP with these properties, in one of the many forms that RDF allows. Other documents in it have another date. */
export function xmpPacket(properties: Readonly<Partial<Record<XmpName, string>>>, choose: Choose): Buffer {
  const prefixes = { exif: 'exif', photoshop: 'photoshop', xmp: ['xmp', 'xap', 'x1'][choose(3)] }
  const quote = ['"', "'"][choose(2)]
  const isElement = choose(2) === 0
  const decoy = '1999-09-09T09:09:09'
  const named = Object.entries(properties).map(([name, value]) => {
    const [prefix, local] = name.split(':') as [keyof typeof prefixes, string]
    return [`${prefixes[prefix]}:${local}`, value] as const
  })
  const declared = Object.entries(prefixes).map(
    ([prefix, used]) => `xmlns:${used}=${quote}${namespaces[prefix as keyof typeof prefixes]}${quote}`,
  )
  const attributes = named.map(([name, value]) => `${name} = ${quote}${value}${quote}`)
  const elements = named.map(([name, value]) => `<${name}>${value}</${name}>`)
  const others = [
    `<!-- <${prefixes.xmp}:CreateDate>${decoy}</${prefixes.xmp}:CreateDate> exif:DateTimeOriginal="${decoy}" -->`,
    `<m:Pantry xmlns:m="http://ns.adobe.com/xap/1.0/mm/"><rdf:Bag><rdf:li><rdf:Description exif:DateTimeOriginal="${decoy}"/></rdf:li></rdf:Bag></m:Pantry>`,
  ].filter(() => choose(3) === 0)
  return Buffer.from(
    `<?xpacket begin='\ufeff' id='W5M0MpCehiHzreSzNTczkc9d'?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" ${declared.join(' ')} ${isElement ? '' : attributes.join('\n')}>
${others.join('\n')}${isElement ? elements.join('\n') : ''}
</rdf:Description></rdf:RDF></x:xmpmeta>${' '.repeat(choose(200))}<?xpacket end='w'?>`,
  )
}

/** What a file states, and how. */
export interface Blocks {
  readonly exif: Buffer | null
  readonly xmp: Buffer | null
  /** Whether XMP comes before Exif. */
  readonly isXmpFirst: boolean
  /** A choice that the formats have. */
  readonly choice: number
}

const ordered = ({ isXmpFirst }: Blocks, exif: readonly Buffer[], xmp: readonly Buffer[]) =>
  isXmpFirst ? [...xmp, ...exif] : [...exif, ...xmp]

const given = (block: Buffer | null, wrap: (block: Buffer) => Buffer) => (block ? [wrap(block)] : [])

function inJpeg(jpeg: Buffer, blocks: Blocks): Buffer {
  const segment = (start: string) => (block: Buffer) =>
    Buffer.concat([
      Buffer.of(0xff, 0xe1),
      bytesOf([block.length + start.length + 2, 2]),
      Buffer.from(start),
      block,
    ])
  const added = ordered(
    blocks,
    given(blocks.exif, segment('Exif\0\0')),
    given(blocks.xmp, segment('http://ns.adobe.com/xap/1.0/\0')),
  )
  return Buffer.concat([jpeg.subarray(0, 2), ...added, jpeg.subarray(2)])
}

function inPng(png: Buffer, blocks: Blocks): Buffer {
  const chunk = (type: string) => (data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    return Buffer.concat([bytesOf([data.length, 4]), named, bytesOf([crc32(named), 4])])
  }
  const profile = (name: string) => (block: Buffer) => {
    const text = `\n${name}\n${`${block.length}`.padStart(8)}\n${block.toString('hex').replace(/.{72}/g, '$&\n')}\n`
    return chunk('zTXt')(Buffer.concat([Buffer.from(`Raw profile type ${name}\0\0`), deflateSync(text)]))
  }
  const xmpText = (isCompressed: boolean) => (block: Buffer) =>
    chunk('iTXt')(
      Buffer.concat([
        Buffer.from(`XML:com.adobe.xmp\0${isCompressed ? '\x01' : '\0'}\0\0\0`),
        isCompressed ? deflateSync(block) : block,
      ]),
    )
  const { choice } = blocks
  const added = ordered(
    blocks,
    given(
      blocks.exif,
      choice % 3 === 0
        ? (block) => profile('exif')(Buffer.concat([Buffer.from('Exif\0\0'), block]))
        : chunk('eXIf'),
    ),
    given(blocks.xmp, choice % 3 === 0 ? profile('xmp') : xmpText(choice % 3 === 1)),
  )
  // Behind the header, or before the end.
  const at = choice % 2 === 0 ? 33 : png.length - 12
  return Buffer.concat([png.subarray(0, at), ...added, png.subarray(at)])
}

function inWebp(webp: Buffer, blocks: Blocks): Buffer {
  const chunk = (type: string, data: Buffer) =>
    Buffer.concat([
      Buffer.from(type),
      bytesOf([data.length, 4]).reverse(),
      data,
      Buffer.alloc(data.length % 2),
    ])
  const flags = (blocks.exif ? 8 : 0) + (blocks.xmp ? 4 : 0)
  const body = Buffer.concat([
    Buffer.from('WEBP'),
    chunk('VP8X', Buffer.of(flags, 0, 0, 0, 7, 0, 0, 7, 0, 0)),
    webp.subarray(12),
    ...ordered(
      blocks,
      given(blocks.exif, (block) => chunk('EXIF', block)),
      given(blocks.xmp, (block) => chunk('XMP ', block)),
    ),
  ])
  return Buffer.concat([Buffer.from('RIFF'), bytesOf([body.length, 4]).reverse(), body])
}

const none = bytesOf([0, 4])

/** A file of pictures whose items of metadata are in `mdat`; those of Exif in two parts with an odd choice. */
function inPictures(brand: string, blocks: Blocks): Buffer {
  const exif = given(blocks.exif, (block) => Buffer.concat([bytesOf([6, 4]), Buffer.from('Exif\0\0'), block]))
  const items = ordered(
    blocks,
    exif,
    given(blocks.xmp, (block) => block),
  )
  const entries = items.map((item) => (exif.includes(item) ? 'Exif\0' : 'mime\0application/rdf+xml\0'))
  const isSplit = blocks.choice % 2 === 1
  const start = box('ftyp', brand, none, brand)
  const list = (first: number) => {
    let position = first
    const places = items.map((item, index) => {
      const lengths = isSplit && exif.includes(item) ? [10, item.length - 10] : [item.length]
      const extents = lengths.map((length) => {
        position += length
        return bytesOf([position - length, 4], [length, 4])
      })
      return Buffer.concat([bytesOf([index + 1, 2], [0, 2], [extents.length, 2]), ...extents])
    })
    return box(
      'meta',
      none,
      box('hdlr', none, none, 'pict', Buffer.alloc(13)),
      box(
        'iinf',
        bytesOf([0, 4], [items.length, 2]),
        ...entries.map((entry, index) =>
          box('infe', bytesOf([0x02000000, 4], [index + 1, 2], [0, 2]), entry),
        ),
      ),
      box('iloc', none, bytesOf([0x4400, 2], [items.length, 2]), ...places),
    )
  }
  return Buffer.concat([start, list(start.length + list(0).length + 8), box('mdat', ...items)])
}

/** What a video states besides XMP: the time in its header in seconds since 1904, and the creation date of QuickTime. */
export interface MovieForm {
  readonly seconds: number
  readonly created: string | null
}

export function movieOf(brand: string, { seconds, created }: MovieForm, blocks: Blocks): Buffer {
  const key = 'com.apple.quicktime.creationdate'
  const value = (text: string) => box('data', bytesOf([1, 4], [0, 4]), text)
  const keys = (text: string) => [
    box('hdlr', none, none, 'mdta', Buffer.alloc(13)),
    box('keys', none, bytesOf([2, 4]), box('mdta', 'other'), box('mdta', key)),
    box('ilst', box('\0\0\0\x01', value('none')), box('\0\0\0\x02', value(text))),
  ]
  const isQuickTime = brand === 'qt  '
  const metadata = given(created === null ? null : Buffer.from(created), (text) =>
    isQuickTime
      ? box('meta', ...keys(text.toString()))
      : box('udta', box('meta', none, ...keys(text.toString()))),
  )
  const header = box('mvhd', none, bytesOf([seconds, 4], [seconds, 4], [600, 4], [600, 4]), Buffer.alloc(80))
  const xmpId = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex')
  const isInMovie = isQuickTime && blocks.choice % 2 === 0
  const packets = given(blocks.xmp, (block) =>
    isInMovie ? box('udta', box('XMP_', block)) : box('uuid', xmpId, block),
  )
  return Buffer.concat([
    box('ftyp', brand, none, brand),
    box('mdat', 'frames'),
    box('moov', header, ...metadata, ...(isInMovie ? packets : [])),
    ...(isInMovie ? [] : packets),
  ])
}

export type PictureFormat = 'jpg' | 'png' | 'webp' | 'tif' | 'heic' | 'avif'

/** A picture of the format with these blocks. `base` is one without metadata. */
export function pictureOf(format: PictureFormat, base: Buffer, blocks: Blocks): Buffer {
  if (format === 'jpg') return inJpeg(base, blocks)
  if (format === 'png') return inPng(base, blocks)
  if (format === 'webp') return inWebp(base, blocks)
  if (format === 'tif') return blocks.exif ?? base
  return inPictures(format === 'heic' ? 'heic' : 'avif', blocks)
}
