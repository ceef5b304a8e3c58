import { deflateSync } from 'node:zlib'

/** A PDF of a few kB whose page has an array of this many numbers, each of which takes 16 bytes in memory. */
export function hungryPdf(numbers: number): Buffer {
  const page = `3 0 <</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/X[${'0 '.repeat(numbers)}]>>`
  const packed = deflateSync(page)
  const parts = [
    Buffer.from('%PDF-1.5\n'),
    Buffer.from('1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n'),
    Buffer.from('2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n'),
    Buffer.concat([
      Buffer.from(
        `4 0 obj\n<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length ${packed.length}>>\nstream\n`,
      ),
      packed,
      Buffer.from('\nendstream\nendobj\n'),
    ]),
  ]
  const at = (index: number) => parts.slice(0, index).reduce((sum, { length }) => sum + length, 0)
  const entry = (type: number, place: number) => [type, place >> 24, place >> 16, place >> 8, place, 0, 0]
  const table = Buffer.from(
    [entry(0, 0), entry(1, at(1)), entry(1, at(2)), entry(2, 4), entry(1, at(3)), entry(1, at(4))].flat(),
  )
  const header = `5 0 obj\n<</Type/XRef/Size 6/Root 1 0 R/W[1 4 2]/Length ${table.length}>>\nstream\n`
  const end = `\nendstream\nendobj\nstartxref\n${at(4)}\n%%EOF\n`
  return Buffer.concat([...parts, Buffer.from(header), table, Buffer.from(end)])
}

/** A PDF with these objects, of which the first is the catalog. */
export function pdfOf(objects: readonly string[]): Buffer<ArrayBuffer> {
  let text = '%PDF-1.7\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const start = text.length
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(text)
}

/** A PDF of 3 kB whose page draws a form that draws another one ten times, and so on, so that it takes days to render. */
export function endlessPdf(): Buffer<ArrayBuffer> {
  const stream = (entries: string, drawing: string) =>
    `<< ${entries} /Length ${drawing.length} >>\nstream\n${drawing}\nendstream`
  const depth = 12
  const uses = (object: number) => `/Resources << /XObject << /F ${object} 0 R >> >>`
  const form = (nth: number) =>
    stream(
      `/Type /XObject /Subtype /Form /BBox [0 0 100 100] ${nth < depth ? uses(5 + nth) : ''}`,
      nth < depth ? '/F Do '.repeat(10) : '0 0 50 50 re f',
    )
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R ${uses(5)} >>`,
    stream('', '/F Do'),
    ...Array.from({ length: depth }, (_, index) => form(index + 1)),
  ])
}
