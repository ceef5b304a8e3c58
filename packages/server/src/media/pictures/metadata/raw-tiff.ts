import { type ByteSource, UnreadableFile } from './pieces.ts'
import { directoriesOf, readNumbers, type TiffFormat } from './tiff-directory.ts'

/** What follows the header of files of Phase One and Canon. */
const markers: ReadonlySet<string> = new Set(['IIII', 'MMMM', 'CR\x02\x00'])

/** Tags, and those of their values that only RAW files have; null for all values. */
const rawValues: ReadonlyMap<number, ReadonlySet<number> | null> = new Map([
  // Compressions: Kodak, Sony, packed, Samsung, Nikon, lossy DNG, JPEG XL in DNG, Pentax.
  [259, new Set([262, 32767, 32769, 32770, 32772, 32867, 34713, 34892, 52546, 65000, 65535])],
  // Colours: of a filter on the sensor, and linear.
  [262, new Set([32803, 34892])],
  // The version of DNG.
  [50706, null],
])

const extensions: ReadonlySet<string> = new Set([
  ...[
    '3fr',
    'ari',
    'arw',
    'bay',
    'cap',
    'cr2',
    'dcr',
    'dng',
    'eip',
    'erf',
    'fff',
    'gpr',
    'iiq',
    'k25',
    'kdc',
  ],
  ...[
    'mdc',
    'mef',
    'mos',
    'mrw',
    'nef',
    'nrw',
    'orf',
    'pef',
    'ptx',
    'raw',
    'rw2',
    'rwl',
    'sr2',
    'srf',
    'srw',
  ],
])

/** Whether RAW files have the extension. Those that have the structure of TIFF are often detected as TIFF. */
export const isRawExtension = (extension: string | null): boolean =>
  extension !== null && extensions.has(extension.toLowerCase())

/** Whether a file with the structure of TIFF is a RAW file, whose private tags are needed to show it. */
export async function isRaw(source: ByteSource, format: TiffFormat): Promise<boolean> {
  try {
    if (markers.has((await source.read(8, 4)).toString('latin1'))) return true
    for await (const { entries } of directoriesOf(source, format))
      for (const entry of entries) {
        const values = rawValues.get(entry.tag)
        if (values === null) return true
        if (values === undefined) continue
        const [value] = await readNumbers(source, format, entry, 1)
        if (value !== undefined && values.has(value)) return true
      }
  } catch (error) {
    // The plan reports the damage.
    if (!(error instanceof UnreadableFile || error instanceof RangeError)) throw error
  }
  return false
}
