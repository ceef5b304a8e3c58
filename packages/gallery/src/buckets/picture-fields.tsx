import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Choice, IconButton } from '../components/controls.tsx'
import { loadServiceSizes } from '../service/service-sizes.ts'
import { strings } from '../strings.ts'
import { type FieldsProps, noOthers, Other } from './setting-fields.tsx'
import {
  firstSizes,
  formatSizes,
  formats,
  maxSizes,
  readNames,
  readSizes,
  type SizeMistake,
  type SizeRow,
  sizeMistakes,
  sizeNames,
} from './sizes.ts'

/** The settings of a bucket about smaller pictures. */
export function PictureFields(props: FieldsProps) {
  const { values, onChange, others = noOthers } = props
  const texts = strings.buckets.pictures
  const ofService = useServiceSizes()
  return (
    <>
      <SizesField {...props} ofService={ofService} />
      <Choice
        label={texts.crop}
        options={texts.crops}
        value={values.crop}
        onChoose={(crop) => onChange({ crop })}
      />
      {others.crop !== undefined && (
        <Other {...props} fields={['crop']}>
          {texts.crops[others.crop]}
        </Other>
      )}
      <PublicSizesField {...props} ofService={ofService} />
    </>
  )
}

interface SizesProps extends FieldsProps {
  /** The sizes of the service, as `readSizes` reads them. */
  readonly ofService: string
}

function useServiceSizes(): string {
  const [sizes, setSizes] = useState(firstSizes)
  useEffect(() => {
    let unmounted = false
    void loadServiceSizes().then((loaded) => {
      if (!unmounted) setSizes(loaded.join(' '))
    })
    return () => {
      unmounted = true
    }
  }, [])
  return sizes
}

const newRow: SizeRow = {
  ...{ name: '', width: '', height: '', fit: 'contain', format: '', quality: '', animated: false },
}

/** The sizes of a bucket, a row for each. What is wrong with a row is said below it. */
function SizesField(props: SizesProps) {
  const { values, onChange, others = noOthers, showsMistakes = false, ofService } = props
  const texts = strings.buckets.pictures
  const rows = readSizes(values.variants)
  const mistakes = showsMistakes ? sizeMistakes(rows) : []
  const list = useRef<HTMLOListElement>(null)
  const addButton = useRef<HTMLButtonElement>(null)
  const set = (next: readonly SizeRow[]) => onChange({ variants: formatSizes(next) })
  return (
    <fieldset class="bucket-sizes">
      <legend>{texts.sizes}</legend>
      <label class="token-scope">
        <input
          type="checkbox"
          checked={rows.length > 0}
          onChange={({ currentTarget }) =>
            onChange({ variants: currentTarget.checked ? formatSizes(readSizes(ofService)) : '' })
          }
        />
        {texts.ownSizes}
      </label>
      {rows.length === 0 && (
        <ul class="service-sizes" aria-label={texts.serviceSizes}>
          {readSizes(ofService).map((row) => (
            <li key={row.name}>{describeSize(row)}</li>
          ))}
        </ul>
      )}
      {rows.length > 0 && (
        <>
          <p class="small muted">{texts.sizesHint}</p>
          <ol ref={list}>
            {rows.map((row, index) => (
              <li key={index}>
                <SizeFields
                  row={row}
                  number={index + 1}
                  mistake={mistakes[index] ?? null}
                  onChange={(change) => set(rows.with(index, { ...row, ...change }))}
                  onRemove={() => {
                    set(rows.toSpliced(index, 1))
                    // What had the focus is removed.
                    addButton.current?.focus()
                  }}
                />
              </li>
            ))}
          </ol>
          <div>
            <button
              ref={addButton}
              type="button"
              class="button small"
              disabled={rows.length >= maxSizes}
              onClick={() => {
                set([...rows, newRow])
                requestAnimationFrame(() =>
                  list.current?.querySelector<HTMLElement>('li:last-child input')?.focus(),
                )
              }}
            >
              {texts.addSize}
            </button>
          </div>
        </>
      )}
      {others.variants !== undefined && (
        <Other {...props} fields={['variants']}>
          {others.variants === '' ? texts.ofService : others.variants.replaceAll(' ', ', ')}
        </Other>
      )}
    </fieldset>
  )
}

/** `card: 640 × 360, Cut to fill, WEBP, Keeps movement`. */
function describeSize({ name, width, height, fit, format, quality, animated }: SizeRow): string {
  const texts = strings.buckets.pictures
  const properties = [
    `${width} × ${height || width}`,
    texts.fits[fit],
    ...(format === '' ? [] : [format.toUpperCase()]),
    ...(quality === '' ? [] : [`${texts.quality} ${quality}`]),
    ...(animated ? [texts.animated] : []),
  ]
  return `${name}: ${properties.join(', ')}`
}

interface SizeFieldsProps {
  readonly row: SizeRow
  /** From 1. */
  readonly number: number
  readonly mistake: SizeMistake | null
  readonly onChange: (change: Partial<SizeRow>) => void
  readonly onRemove: () => void
}

type TextField = 'name' | 'width' | 'height' | 'quality'

/** The fields that a mistake is about. */
const mistaken: Readonly<Record<SizeMistake, readonly TextField[]>> = {
  name: ['name'],
  repeated: ['name'],
  side: ['width', 'height'],
  quality: ['quality'],
  qualityFormat: ['quality'],
  animated: [],
}

function SizeFields({ row, number, mistake, onChange, onRemove }: SizeFieldsProps) {
  const id = useId()
  const texts = strings.buckets.pictures
  const isWrong = (name: TextField) => mistake !== null && mistaken[mistake].includes(name)
  const field = (name: TextField, most: number, placeholder = '') => (
    <label class={`size-${name}`}>
      {texts[name]}
      <input
        type="text"
        inputMode={name === 'name' ? 'text' : 'numeric'}
        value={row[name]}
        placeholder={placeholder}
        maxLength={most}
        autocapitalize="none"
        autocomplete="off"
        spellcheck={false}
        aria-invalid={isWrong(name)}
        aria-describedby={isWrong(name) ? id : undefined}
        onInput={({ currentTarget }) => {
          // Nothing else is allowed in a name or a number.
          const typed = currentTarget.value.toLowerCase().replace(name === 'name' ? /[^a-z0-9-]/g : /\D/g, '')
          currentTarget.value = typed
          onChange({ [name]: typed })
        }}
      />
    </label>
  )
  return (
    <fieldset class="size-row" aria-label={texts.sizeNumber(number)}>
      {field('name', 32)}
      {field('width', 4)}
      {field('height', 4, row.width)}
      <IconButton icon="trash" label={texts.removeSize(row.name || `${number}`)} onClick={onRemove} />
      <Choice label={texts.fit} options={texts.fits} value={row.fit} onChoose={(fit) => onChange({ fit })} />
      <Choice
        label={texts.format}
        options={{
          '': texts.automatic,
          ...Object.fromEntries(formats.map((name) => [name, name.toUpperCase()])),
        }}
        value={row.format}
        onChoose={(format) => onChange({ format })}
      />
      {field('quality', 3, texts.usual)}
      <label class="token-scope">
        <input
          type="checkbox"
          checked={row.animated}
          onChange={({ currentTarget }) => onChange({ animated: currentTarget.checked })}
        />
        {texts.animated}
      </label>
      <p id={id} class="message bad" role="alert">
        {mistake !== null && texts.mistakes[mistake]}
      </p>
    </fieldset>
  )
}

/** The sizes that everybody may see although the bucket is private. */
function PublicSizesField(props: SizesProps) {
  const { values, onChange, others = noOthers, ofService } = props
  const texts = strings.buckets.pictures
  const chosen = readNames(values.public_variants)
  if (!values.private && chosen.length === 0) return null
  return (
    <fieldset class="bucket-sizes">
      <legend>{texts.publicSizes}</legend>
      {sizeNames(values.variants || ofService, chosen).map((name) => (
        <label key={name} class="token-scope">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget }) => {
              const next = currentTarget.checked
                ? [...chosen, name]
                : chosen.filter((other) => other !== name)
              onChange({ public_variants: next.join(' ') })
            }}
          />
          {name}
        </label>
      ))}
      {chosen.length > 0 && <p class="bucket-warning">{texts.publicWarning(chosen.join(', '))}</p>}
      {others.public_variants !== undefined && (
        <Other {...props} fields={['public_variants']}>
          {others.public_variants === '' ? texts.noneIsPublic : others.public_variants.replaceAll(' ', ', ')}
        </Other>
      )}
    </fieldset>
  )
}
