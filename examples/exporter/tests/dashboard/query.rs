//! Evaluates a query over one scrape, as if all that was counted had happened within the last second, and refuses what
//! Prometheus would evaluate to nothing, or to something without a meaning.

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{
    self, AggregateExpr, BinaryExpr, Call, Expr, LabelModifier, VectorSelector,
};
use std::collections::BTreeMap;

use super::scrape::{Kind, Labels, Scrape};
use super::unit::{Unit, NONE, SECONDS};

/// The values of a query.
pub(crate) struct Values {
    pub(crate) series: Vec<(Labels, f64)>,
    pub(crate) unit: Unit,
    /// The unit of the upper bounds, if these are buckets of a histogram.
    pub(crate) bounds: Option<Unit>,
    is_scalar: bool,
    is_quotient: bool,
}

impl Values {
    fn scalar(value: f64, unit: Unit) -> Self {
        Self {
            series: vec![(Labels::new(), value)],
            unit,
            bounds: None,
            is_scalar: true,
            is_quotient: false,
        }
    }

    /// Whether a value may be shown as a percentage.
    pub(crate) fn is_ratio(&self) -> bool {
        let is_part = |(_, value): &(_, f64)| (0.0..=1.0).contains(value);
        self.is_quotient && self.series.iter().all(is_part)
    }

    fn has(&self, label: &str) -> bool {
        self.series
            .iter()
            .any(|(labels, _)| labels.contains_key(label))
    }
}

/// Replaces the variables of a dashboard.
fn replace_variables(query: &str, scrape: &Scrape) -> Result<String, String> {
    let all = |label| Vec::from_iter(scrape.values_of(label)).join("|");
    let mut parts = query.split('$');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
        let (variable, rest) = part.split_at(end);
        replaced += &match variable {
            "__rate_interval" => "1m".to_owned(),
            "queue" | "store" => all(variable),
            _ => return Err(format!("unknown variable: {variable}")),
        };
        replaced += rest;
    }
    Ok(replaced)
}

pub(crate) fn evaluate(query: &str, scrape: &Scrape) -> Result<Values, String> {
    let query = replace_variables(query, scrape)?;
    Evaluation { scrape }.of(&parser::parse(&query)?)
}

struct Evaluation<'s> {
    scrape: &'s Scrape,
}

impl Evaluation<'_> {
    fn of(&self, expr: &Expr) -> Result<Values, String> {
        match expr {
            Expr::Paren(paren) => self.of(&paren.expr),
            Expr::NumberLiteral(number) => Ok(Values::scalar(number.val, NONE)),
            Expr::VectorSelector(selector) => match self.select(selector)? {
                (values, Kind::Gauge) => Ok(values),
                (_, kind) => Err(format!("{kind:?} without a rate: {selector}")),
            },
            Expr::Call(call) => self.call(call),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Binary(binary) => self.binary(binary),
            other => Err(format!("not known to this test: {other}")),
        }
    }

    fn select(&self, selector: &VectorSelector) -> Result<(Values, Kind), String> {
        let name = selector
            .name
            .as_deref()
            .ok_or("a selector without a name")?;
        let metric = self.scrape.metric_of(name);
        let (metric, kind) = metric.ok_or_else(|| format!("no such metric: {name}"))?;
        let matchers = &selector.matchers.matchers;
        let samples: Vec<_> = self.scrape.samples_of(name).collect();
        for Matcher { name: label, .. } in matchers {
            if !samples
                .iter()
                .any(|sample| sample.labels.contains_key(label))
            {
                return Err(format!("{name} has no label {label}"));
            }
        }
        let is_of_store = metric.starts_with("requeue_disk_");
        let label = if is_of_store { "store" } else { "queue" };
        let selects =
            |matcher: &Matcher| matcher.name == label && !matches!(matcher.op, MatchOp::NotEqual);
        if !matchers.iter().any(selects) {
            return Err(format!("{name} is not selected by {label}"));
        }
        let fits = |labels: &Labels| {
            matchers.iter().all(|matcher| {
                let value = labels.get(&matcher.name);
                matcher.is_match(value.map_or("", String::as_str))
            })
        };
        let samples = samples.into_iter().filter(|sample| fits(&sample.labels));
        let series: Vec<_> = samples
            .map(|sample| (sample.labels.clone(), sample.value))
            .collect();
        if series.is_empty() {
            return Err(format!("no sample of {selector}"));
        }
        let counts = kind == Kind::Histogram && !name.ends_with("_sum");
        let unit = Unit::of_metric(metric);
        let values = Values {
            series,
            unit: if counts { NONE } else { unit },
            bounds: name.ends_with("_bucket").then_some(unit),
            is_scalar: false,
            is_quotient: false,
        };
        Ok((values, kind))
    }

    fn call(&self, call: &Call) -> Result<Values, String> {
        let args: Vec<_> = call.args.args.iter().map(AsRef::as_ref).collect();
        match (call.func.name, &args[..]) {
            (name @ ("rate" | "increase"), [Expr::MatrixSelector(range)]) => {
                let (mut values, kind) = self.select(&range.vs)?;
                if kind == Kind::Gauge {
                    return Err(format!("{name} of a gauge: {}", range.vs));
                }
                if name == "rate" {
                    values.unit = values.unit / SECONDS;
                }
                Ok(values)
            }
            ("histogram_quantile", [Expr::NumberLiteral(quantile), buckets]) => {
                quantile_of(quantile.val, self.of(buckets)?)
            }
            ("time", []) => Ok(Values::scalar(0.0, SECONDS)),
            (name, _) => Err(format!("not known to this test: {name}")),
        }
    }

    fn aggregate(&self, aggregate: &AggregateExpr) -> Result<Values, String> {
        let values = self.of(&aggregate.expr)?;
        let by: &[String] = match &aggregate.modifier {
            None => &[],
            Some(LabelModifier::Include(by)) => &by.labels,
            Some(LabelModifier::Exclude(_)) => return Err("not known to this test: without".into()),
        };
        if let Some(label) = by.iter().find(|label| !values.has(label)) {
            return Err(format!("nothing to aggregate by: {label}"));
        }
        let op = aggregate.op.to_string();
        if values.bounds.is_some() && !(op == "sum" && by.iter().any(|label| label == "le")) {
            return Err(format!(
                "buckets are aggregated by something other than sum by (le): {aggregate}"
            ));
        }
        let add = match op.as_str() {
            "sum" => |one: f64, other: f64| one + other,
            "max" => f64::max,
            "min" => f64::min,
            _ => return Err(format!("not known to this test: {op}")),
        };
        let mut groups = BTreeMap::new();
        for (mut labels, value) in values.series {
            labels.retain(|label, _| by.contains(label));
            groups
                .entry(labels)
                .and_modify(|sum| *sum = add(*sum, value))
                .or_insert(value);
        }
        Ok(Values {
            series: groups.into_iter().collect(),
            ..values
        })
    }

    fn binary(&self, binary: &BinaryExpr) -> Result<Values, String> {
        let (left, right) = (self.of(&binary.lhs)?, self.of(&binary.rhs)?);
        if left.bounds.is_some() || right.bounds.is_some() {
            return Err("arithmetic with buckets".into());
        }
        if binary
            .modifier
            .as_ref()
            .is_some_and(|modifier| modifier.matching.is_some())
        {
            return Err("not known to this test: on, ignoring".into());
        }
        let (unit, apply) = match binary.op.to_string().as_str() {
            sum @ ("+" | "-") => {
                if left.unit != right.unit {
                    return Err(format!("{} {sum} {}", left.unit, right.unit));
                }
                let is_sum = sum == "+";
                let apply: fn(f64, f64) -> f64 = if is_sum { |a, b| a + b } else { |a, b| a - b };
                (left.unit, apply)
            }
            "*" => (
                left.unit * right.unit,
                (|a, b| a * b) as fn(f64, f64) -> f64,
            ),
            "/" => (
                left.unit / right.unit,
                (|a, b| a / b) as fn(f64, f64) -> f64,
            ),
            op => return Err(format!("not known to this test: {op}")),
        };
        let mut series = Vec::new();
        for (labels, value) in &left.series {
            for (others, other) in &right.series {
                if labels == others || left.is_scalar || right.is_scalar {
                    let labels = if left.is_scalar { others } else { labels };
                    series.push((labels.clone(), apply(*value, *other)));
                }
            }
        }
        if series.is_empty() {
            return Err(format!("no labels of both sides are equal: {binary}"));
        }
        Ok(Values {
            series,
            unit,
            bounds: None,
            is_scalar: left.is_scalar && right.is_scalar,
            is_quotient: binary.op.to_string() == "/",
        })
    }
}

/// The upper bounds of the buckets that the quantiles are in.
fn quantile_of(quantile: f64, buckets: Values) -> Result<Values, String> {
    let unit = buckets.bounds.ok_or("a quantile of what is no histogram")?;
    if !(0.0..=1.0).contains(&quantile) {
        return Err(format!("{quantile} is no quantile"));
    }
    let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (mut labels, count) in buckets.series {
        let bound = labels.remove("le").and_then(|bound| bound.parse().ok());
        let bound = bound.ok_or("a bucket without a bound")?;
        histograms.entry(labels).or_default().push((bound, count));
    }
    let series = histograms.into_iter().map(|(labels, mut buckets)| {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = buckets.last().map_or(0.0, |bucket| bucket.1);
        let holds = |bucket: &&(f64, f64)| bucket.1 >= quantile * all;
        let bound = buckets
            .iter()
            .find(holds)
            .map_or(f64::NAN, |bucket| bucket.0);
        (labels, bound)
    });
    Ok(Values {
        series: series.collect(),
        unit,
        bounds: None,
        is_scalar: false,
        is_quotient: false,
    })
}
