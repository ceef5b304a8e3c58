import { type Box, boxAt, childrenOf, dataOf, loadBox } from './boxes.ts'
import { type ByteSource, type Range, UnreadableFile } from './pieces.ts'
import { searchXmp, type TimeSearch } from './time-search.ts'
import { cleanText, parseTimeText } from './time-text.ts'

/** From 1904, in which movie headers begin to count, to 1970. Milliseconds. */
const movieEpoch = Date.UTC(1904, 0, 1)
const day = 86_400_000

/** Bytes of a text. */
const maxText = 64

/** The header has the time in UTC. QuickTime files of phones also have it as a text, with its offset. */
export async function searchMovie(source: ByteSource, movie: Box, search: TimeSearch): Promise<void> {
  for await (const box of boxesOf(source, { start: movie.data, end: movie.end }, search.limits.parts)) {
    if (box.type === 'mvhd') await search.attempt(() => searchHeader(source, box, search))
    if (box.type === 'meta') await search.attempt(() => searchKeys(source, box, search))
    // Programs that copy a QuickTime file into an MP4 file write its keys here.
    if (box.type === 'udta') await search.attempt(() => searchUserData(source, box, search))
  }
}

async function searchHeader(source: ByteSource, box: Box, search: TimeSearch): Promise<void> {
  const data = await source.read(box.data, 12)
  const seconds = data[0] === 1 ? Number(data.readBigUInt64BE(4)) : data.readUInt32BE(4)
  const time = movieEpoch + seconds * 1000
  // There were no such files before. Some programs write a few seconds after 1904 or 1970.
  if (time > day) search.add('movie-header', { time, offset: 0 })
}

async function searchUserData(source: ByteSource, list: Box, search: TimeSearch): Promise<void> {
  for await (const box of boxesOf(source, { start: list.data, end: list.end }, search.limits.parts)) {
    if (box.type === 'meta') await search.attempt(() => searchKeys(source, box, search))
    if (box.type === 'XMP_')
      await search.attempt(async () => {
        await searchXmp(source, { start: box.data, end: box.end }, search)
      })
  }
}

const creationKey = 'com.apple.quicktime.creationdate'

/** The box has a list of keys, and their values by the numbers of the keys. In files of MP4 it begins with a version. */
async function searchKeys(source: ByteSource, meta: Box, search: TimeSearch): Promise<void> {
  const { parts, loaded } = search.limits
  const start = await source.read(meta.data, Math.min(8, meta.end - meta.data))
  const first = meta.data + (start.toString('latin1', 4) === 'hdlr' ? 0 : 4)
  const boxes = new Map<string, Box>()
  for await (const box of boxesOf(source, { start: first, end: meta.end }, parts)) boxes.set(box.type, box)
  const [keys, values] = [boxes.get('keys'), boxes.get('ilst')]
  if (!keys || !values) return
  const list = await loadBox(source, keys, loaded)
  const index = childrenOf(list, keys, 8).findIndex(
    (key) => dataOf(list, key).toString('latin1') === creationKey,
  )
  if (index < 0) return
  for await (const value of boxesOf(source, { start: values.data, end: values.end }, parts)) {
    if (Buffer.from(value.type, 'latin1').readUInt32BE() !== index + 1) continue
    // The type and the language precede the text.
    for await (const { type, data, end } of boxesOf(source, { start: value.data, end: value.end }, parts))
      if (type === 'data')
        search.add(
          'movie-text',
          parseTimeText(cleanText(await source.read(data, Math.min(8 + maxText, end - data)), 8)),
        )
  }
}

/** The boxes of a range, without their content. Throws UnreadableFile if there are more than `limit`. */
export async function* boxesOf(
  source: ByteSource,
  { start, end }: Range,
  limit: number,
): AsyncGenerator<Box> {
  let position = start
  for (let parts = 0; position < end; parts += 1) {
    if (parts >= limit) throw new UnreadableFile('it has too many boxes')
    const box = boxAt(await source.read(position, Math.min(16, end - position)), position, end)
    if (box === null) return
    yield box
    position = box.end
  }
}
