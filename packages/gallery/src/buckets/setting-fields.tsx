import type { ComponentChildren } from 'preact'
import { formatSize } from '../format.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { metadataChoices, type SettingFields } from './settings.ts'

export interface FieldsProps {
  readonly values: SettingFields
  readonly onChange: (change: Partial<SettingFields>) => void
  /** The values that others have set since, of fields that were edited. */
  readonly others?: Partial<SettingFields>
  /** Whether what is wrong with a field is said beside it. */
  readonly showsMistakes?: boolean
  /** Discards the edits of these fields. */
  readonly onTake?: (...fields: readonly (keyof SettingFields)[]) => void
}

export const noOthers: Partial<SettingFields> = {}

/** The settings that most buckets have: its limits, and whether it is private. */
export function LimitFields(props: FieldsProps) {
  const texts = strings.buckets
  return (
    <>
      <SizeField {...props} field="max_bytes" unitField="unit" label={texts.maxBytes} unit={texts.unit} />
      <NumberField {...props} field="max_items" label={texts.maxItems} none={texts.noLimit} />
      <Checkbox {...props} field="private" label={texts.private} />
    </>
  )
}

export function MoreFields(props: FieldsProps) {
  const { values, onChange, others = noOthers } = props
  const texts = strings.buckets
  return (
    <>
      <SizeField
        {...props}
        field="max_file_size"
        unitField="file_unit"
        label={texts.maxFileSize}
        unit={texts.fileUnit}
      />
      <label>
        {texts.types}
        <input
          type="text"
          placeholder={texts.allTypes}
          value={values.types}
          autocapitalize="none"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => onChange({ types: currentTarget.value })}
        />
      </label>
      {others.types !== undefined && (
        <Other {...props} fields={['types']}>
          {others.types || texts.allTypes}
        </Other>
      )}
      <Checkbox {...props} field="signed_pages" label={texts.signedPages} />
      <Checkbox {...props} field="public_keys" label={texts.publicKeys} />
      {values.public_keys && <p class="bucket-warning">{texts.publicKeysWarning}</p>}
      <Checkbox {...props} field="public_list" label={texts.publicList} />
      <Checkbox {...props} field="url_uploads" label={texts.urlUploads} />
      <NumberField {...props} field="trash_days" label={texts.trashDays} none={texts.noTrash} />
      <NumberField {...props} field="item_days" label={texts.itemDays} none={texts.noExpiry} min={1} />
      <label>
        {texts.metadata}
        <span class="select">
          <select
            value={values.metadata}
            onChange={({ currentTarget }) => {
              const metadata = metadataChoices.find((choice) => choice === currentTarget.value)
              if (metadata) onChange({ metadata })
            }}
          >
            {metadataChoices.map((choice) => (
              <option key={choice} value={choice} selected={choice === values.metadata}>
                {texts.metadataChoices[choice]}
              </option>
            ))}
          </select>
        </span>
      </label>
      {others.metadata !== undefined && (
        <Other {...props} fields={['metadata']}>
          {texts.metadataChoices[others.metadata]}
        </Other>
      )}
    </>
  )
}

interface FieldProps<Field> extends FieldsProps {
  readonly field: Field
  readonly label: string
}

interface SizeFieldProps extends FieldProps<'max_bytes' | 'max_file_size'> {
  readonly unitField: 'unit' | 'file_unit'
  /** The label of the unit. */
  readonly unit: string
}

function SizeField(props: SizeFieldProps) {
  const { values, onChange, others = noOthers, field, unitField, label } = props
  const { [field]: amount = values[field], [unitField]: unit = values[unitField] } = others
  const isOther = others[field] !== undefined || others[unitField] !== undefined
  // An edit is of both: a unit that others choose would change the meaning of the amount.
  const edit = (size: string, of: string) => onChange({ [field]: size, [unitField]: of })
  return (
    <>
      <div class="bucket-size">
        <label>
          {label}
          <input
            type="number"
            min={0}
            step="any"
            inputMode="decimal"
            placeholder={strings.buckets.noLimit}
            value={values[field]}
            onInput={({ currentTarget }) => edit(currentTarget.value, values[unitField])}
          />
        </label>
        <span class="select">
          <select
            aria-label={props.unit}
            value={values[unitField]}
            onChange={({ currentTarget }) => edit(values[field], currentTarget.value)}
          >
            {strings.units.map((name, number) => (
              <option key={name} value={`${number}`} selected={`${number}` === values[unitField]}>
                {name}
              </option>
            ))}
          </select>
        </span>
      </div>
      {isOther && (
        <Other {...props} fields={[field, unitField]}>
          {amount === '' ? strings.buckets.noLimit : formatSize(Number(amount) * 1000 ** Number(unit))}
        </Other>
      )}
    </>
  )
}

interface NumberFieldProps extends FieldProps<'max_items' | 'trash_days' | 'item_days'> {
  /** What an empty field means. */
  readonly none: string
  readonly min?: number
}

function NumberField(props: NumberFieldProps) {
  const { values, onChange, others = noOthers, field, label, none, min = 0 } = props
  const other = others[field]
  return (
    <>
      <label>
        {label}
        <input
          type="number"
          min={min}
          step={1}
          inputMode="numeric"
          placeholder={none}
          value={values[field]}
          onInput={({ currentTarget }) => onChange({ [field]: currentTarget.value })}
        />
      </label>
      {other !== undefined && (
        <Other {...props} fields={[field]}>
          {other === '' ? none : formatCount(Number(other))}
        </Other>
      )}
    </>
  )
}

function Checkbox(
  props: FieldProps<'private' | 'signed_pages' | 'public_keys' | 'public_list' | 'url_uploads'>,
) {
  const { values, onChange, others = noOthers, field, label } = props
  const other = others[field]
  return (
    <>
      <label class="token-scope">
        <input
          type="checkbox"
          checked={values[field]}
          onChange={({ currentTarget }) => onChange({ [field]: currentTarget.checked })}
        />
        {label}
      </label>
      {other !== undefined && (
        <Other {...props} fields={[field]}>
          {other ? strings.buckets.yes : strings.buckets.no}
        </Other>
      )}
    </>
  )
}

interface OtherProps {
  readonly fields: readonly (keyof SettingFields)[]
  readonly onTake?: FieldsProps['onTake']
  readonly children: ComponentChildren
}

/** The value that somebody else has set, with a button that takes it. */
export function Other({ fields, onTake, children }: OtherProps) {
  return (
    <p class="bucket-other">
      <span>{strings.buckets.now(`${children}`)}</span>
      <button type="button" class="button small" onClick={() => onTake?.(...fields)}>
        {strings.buckets.take}
      </button>
    </p>
  )
}
