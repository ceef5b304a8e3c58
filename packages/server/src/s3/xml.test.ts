import fc from 'fast-check'
import { expect, test } from 'vitest'
import { childrenOf, childText, escapeXml, parseXml, xmlDocument, xmlOf } from './xml.ts'

const parse = (text: string) => parseXml(Buffer.from(text))

test('any text is read as it was written', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      // XML has no U+0000, and a parser reads CR as LF: it is written as a reference.
      const written = text.replaceAll('\0', '')
      expect(childText(parse(`<a><b>${escapeXml(written)}</b></a>`), 'b')).toBe(written)
    }),
  )
})

test('elements are written in their order; a list repeats its element, and undefined leaves it out', () => {
  expect(xmlOf({ A: 1, B: [{ C: true }, 'x&y'], D: undefined, E: [] })).toBe(
    '<A>1</A><B><C>true</C></B><B>x&amp;y</B>',
  )
  expect(xmlDocument('R', '')).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<R xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></R>',
  )
})

test('a document of a client is read', () => {
  const document = parse(
    `\ufeff<?xml version="1.0" encoding="UTF-8"?>
    <!-- keys --><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/" a='b'>
      <Quiet>true</Quiet><Object ><Key>a&amp;b&#x20;&#99;&lt;</Key></Object><Object><Key/></Object>
    </Delete>`,
  )
  expect(document.name).toBe('Delete')
  expect(childText(document, 'Quiet')).toBe('true')
  expect(childrenOf(document, 'Object').map((object) => childText(object, 'Key'))).toEqual(['a&b c<', ''])
  expect(childText(document, 'Nothing')).toBeUndefined()
})

test('SP3 an element that occurs once is not taken from several', () => {
  expect(() => childText(parse('<Object><Key>a</Key><Key>b</Key></Object>'), 'Key')).toThrow(
    'XML of the body is malformed',
  )
})

test('what is not such a document is refused', () => {
  for (const text of [
    ...[
      '',
      'text',
      '<a>',
      '</a>',
      '<a></b>',
      '<a/><b/>',
      '<a/>text',
      '<a><b></a></b>',
      '<a b=c/>',
      '<a><',
      '<a>&</a>',
    ],
    ...['<a>&unknown;</a>', '<a>&#0;</a>', '<a>&#xd800;</a>', '<a>&#x110000;</a>', '<a><![CDATA[x]]></a>'],
    ...['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', '<?pi x?><a/>', '<a><?pi x?></a>', '<a><!-- -- --></a>'],
    '<a>'.repeat(10) + '</a>'.repeat(10),
    `<a>${'<b/>'.repeat(100_000)}</a>`,
  ])
    expect(() => parse(text), text.slice(0, 60)).toThrow('malformed')
  expect(() => parseXml(Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]))).toThrow('malformed')
})

test('what would take long is refused, or read in a time that grows with its length only', () => {
  const long = 1_000_000
  const refused = [
    `<a><!--${'x'.repeat(long)}`,
    `<a><!--${'- '.repeat(long)}--`,
    `<a${' b="c"'.repeat(long)}/>`,
    `<a${' '.repeat(long)}/>`,
    `<${'a'.repeat(long)}/>`,
    `<a>${'&#65;'.repeat(long)}</a>`,
    `<a>${'&'.repeat(long)}</a>`,
    `<a>${'\r'.repeat(long)}</a>`,
    `<a>${'x<!---->'.repeat(long)}</a>`,
    `<?xml ${' '.repeat(long)}?><a/>`,
  ]
  for (const text of refused) expect(() => parse(text), text.slice(0, 20)).toThrow('malformed')
  expect(parse(`<a><!--${'x'.repeat(long)}--></a>`).name).toBe('a')
  // 10,000 parts with white space between them, and a key of which each byte is escaped.
  expect(childrenOf(parse(`<a>${'<Part>\n</Part>\n    '.repeat(10_000)}</a>`), 'Part')).toHaveLength(10_000)
  expect(childText(parse(`<a><Key>${'&#x0001;'.repeat(1_024)}</Key></a>`), 'Key')).toBe('\x01'.repeat(1_024))
})
