import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'

/** Of the Debian package, the pictures that are CC BY-SA 4.0; docs/images/README.md names who made them. */
const titles = [
  'Altai',
  'SafeLanding',
  'Volna',
  'Shell',
  'IceCold',
  'Patak',
  'Flow',
  'Honeywave',
  'Kay',
  'MilkyWay',
]
const debianPackage = 'plasma-workspace-wallpapers'

/** Where the package's pictures are, which are fetched and unpacked once, and never installed. */
function unpacked(): string {
  const directory = join(tmpdir(), 'mediabucket-scenery')
  const pictures = join(directory, 'usr/share/wallpapers')
  if (existsSync(pictures)) return pictures
  mkdirSync(directory, { recursive: true })
  execFileSync('apt-get', ['download', '-q', debianPackage], { cwd: directory, stdio: 'ignore' })
  const [archive = ''] = readdirSync(directory).filter((name) => name.endsWith('.deb'))
  execFileSync('dpkg', ['-x', archive, '.'], { cwd: directory })
  return pictures
}

/** What people would call files of their own. */
const names = [
  'Lake in the Altai.jpg',
  'Poster, rocket.png',
  'Shoreline.jpg',
  'Stage lights.jpg',
  'Ice floe.jpg',
  'Paper planes.jpg',
  'River of colour.jpg',
  'Canyon at dusk.jpg',
  'Cover, draft 3.png',
  'Confetti.jpg',
]

/** Pictures as a team would have them: wide, upright and square parts of the ten. */
export async function scenery(): Promise<ReadonlyMap<string, Buffer<ArrayBufferLike>>> {
  const pictures = unpacked()
  const made = new Map<string, Buffer<ArrayBufferLike>>()
  const shapes = [
    { width: 2400, height: 1600, gravity: 'centre', suffix: '' },
    { width: 1200, height: 1600, gravity: 'east', suffix: ' (upright)' },
    { width: 1400, height: 1400, gravity: 'west', suffix: ' (square)' },
  ]
  for (const { suffix, width, height, gravity } of shapes) {
    for (const [index, title] of titles.entries()) {
      const directory = join(pictures, title, 'contents/images')
      const [file = ''] = readdirSync(directory).filter((name) => name.startsWith('5120'))
      const name = names[index] ?? title
      const part = sharp(join(directory, file)).resize(width, height, { fit: 'cover', position: gravity })
      const bytes = name.endsWith('.png') ? part.png({ palette: true }) : part.jpeg({ quality: 82 })
      made.set(name.replace(/(\.\w+)$/, `${suffix}$1`), await bytes.toBuffer())
    }
  }
  return made
}
