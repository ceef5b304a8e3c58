interface ChoiceProps<T extends string> {
  readonly label: string
  /** The texts of the options, by value. */
  readonly options: Readonly<Record<T, string>>
  readonly value: T
  readonly onChoose: (value: T) => void
  /** Whether the label is for screen readers only. */
  readonly quiet?: boolean
}

/** A list of options of which one is chosen. */
export function Choice<T extends string>({ label, options, value, onChoose, quiet = false }: ChoiceProps<T>) {
  const isOption = (text: string): text is T => Object.hasOwn(options, text)
  return (
    <label class="choice">
      <span class={quiet ? 'off-screen' : undefined}>{label}</span>
      <span class="select">
        <select
          value={value}
          onChange={({ currentTarget }) => isOption(currentTarget.value) && onChoose(currentTarget.value)}
        >
          {Object.entries<string>(options).map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      </span>
    </label>
  )
}
